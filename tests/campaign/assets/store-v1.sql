-- A store of schema version 1, as sqlite3 dumps it.
BEGIN TRANSACTION;
CREATE TABLE asks (campaign TEXT NOT NULL REFERENCES campaigns (id), seq BIGINT NOT NULL, lease TEXT NOT NULL, ticket BIGINT NOT NULL, arm BIGINT NOT NULL,
            worker TEXT NOT NULL, asked_at DOUBLE PRECISION NOT NULL, expires_at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (campaign, seq)) WITHOUT ROWID;
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',1,'de772e99df718db0bbe9966b',0,0,'ann',1800000007.0,1800000067.0);
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',4,'bb0486db4d5bfee26f574cc4',1,1,'ann',1800000014.0,1800000074.0);
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',6,'63aeb48750c5a6ec9c3e5dde',2,1,'bob',1800000114.0,1800000174.0);
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',9,'21200c38cc3b4042cfb58e4d',3,2,'ann',1800000121.0,1800000181.0);
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',13,'a36fd8bcbdc28a9e36f47b6b',4,0,'ann',1800000128.0,1800000188.0);
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',15,'610eac8dc11128aaa49f3646',5,0,'ann',1800000135.0,1800000195.0);
INSERT INTO "asks" VALUES('f055d40fc5d4a074fa1ffc45',18,'464e998a9ba8df98233127ff',6,1,'bob',1800000135.0,1800000195.0);
CREATE TABLE campaigns (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, settings TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL, last_seq BIGINT NOT NULL, last_at DOUBLE PRECISION NOT NULL,
            t BIGINT NOT NULL, measurements BIGINT NOT NULL, open_leases BIGINT NOT NULL, done BIGINT NOT NULL);
INSERT INTO "campaigns" VALUES('f055d40fc5d4a074fa1ffc45','old','{"n_arms": 3, "n_clusters": 2, "dim": 1, "delta": 0.001, "method": "uniform", "threshold": "heuristic", "noise": 2.0, "names": ["ash", "beech", "oak"], "distance_ratio": null, "lease_seconds": 60.0, "on_expiry": "skip", "engine": 1}',1800000000.0,18,1800000135.0,4,4,1,0);
CREATE TABLE endings (campaign TEXT NOT NULL REFERENCES campaigns (id), seq BIGINT NOT NULL, lease TEXT NOT NULL, ticket BIGINT NOT NULL, kind TEXT NOT NULL,
            reason TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, PRIMARY KEY (campaign, seq)) WITHOUT ROWID;
INSERT INTO "endings" VALUES('f055d40fc5d4a074fa1ffc45',5,'bb0486db4d5bfee26f574cc4',1,'expired','',1800000114.0);
INSERT INTO "endings" VALUES('f055d40fc5d4a074fa1ffc45',14,'a36fd8bcbdc28a9e36f47b6b',4,'failed','spilled',1800000128.0);
CREATE TABLE measurements (campaign TEXT NOT NULL REFERENCES campaigns (id), seq BIGINT NOT NULL, id TEXT NOT NULL, arm BIGINT NOT NULL, "values" TEXT NOT NULL, lease TEXT,
            ticket BIGINT, worker TEXT, told_at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (campaign, seq), UNIQUE (campaign, id)) WITHOUT ROWID;
INSERT INTO "measurements" VALUES('f055d40fc5d4a074fa1ffc45',2,'m0',0,'[0.1]','de772e99df718db0bbe9966b',0,'ann',1800000007.0);
INSERT INTO "measurements" VALUES('f055d40fc5d4a074fa1ffc45',7,'m1',1,'[0.5833333333333333]','63aeb48750c5a6ec9c3e5dde',2,'bob',1800000114.0);
INSERT INTO "measurements" VALUES('f055d40fc5d4a074fa1ffc45',10,'m2',2,'[5.666666666666667]','21200c38cc3b4042cfb58e4d',3,'ann',1800000121.0);
INSERT INTO "measurements" VALUES('f055d40fc5d4a074fa1ffc45',16,'m4',0,'[1.4333333333333333]','610eac8dc11128aaa49f3646',5,'ann',1800000135.0);
CREATE TABLE notes (campaign TEXT NOT NULL REFERENCES campaigns (id), seq BIGINT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (campaign, seq)) WITHOUT ROWID;
INSERT INTO "notes" VALUES('f055d40fc5d4a074fa1ffc45',3,'evidence','{"t": 1, "statistic": 0.0, "threshold": null}',1800000007.0);
INSERT INTO "notes" VALUES('f055d40fc5d4a074fa1ffc45',8,'evidence','{"t": 2, "statistic": 0.0, "threshold": null}',1800000114.0);
INSERT INTO "notes" VALUES('f055d40fc5d4a074fa1ffc45',11,'groups','{"first": [1, 1, 2]}',1800000121.0);
INSERT INTO "notes" VALUES('f055d40fc5d4a074fa1ffc45',12,'evidence','{"t": 3, "statistic": 0.0, "threshold": 7.649031590357152}',1800000121.0);
INSERT INTO "notes" VALUES('f055d40fc5d4a074fa1ffc45',17,'evidence','{"t": 4, "statistic": 1.2148799948383857, "threshold": 7.77749696517408}',1800000135.0);
CREATE TABLE schema_version (version BIGINT NOT NULL PRIMARY KEY);
INSERT INTO "schema_version" VALUES(1);
COMMIT;
