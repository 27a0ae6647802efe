# The server, without a database of its own: compose.yaml has both. Written without a Docker engine at hand: not built yet.
FROM python:3.13-slim-trixie AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE requirements-dev.lock ./
COPY packaging packaging
COPY native native
COPY src src
RUN python -m venv /opt/coterie \
    && /opt/coterie/bin/pip install --no-cache-dir --constraint requirements-dev.lock ".[serve]"

FROM python:3.13-slim-trixie
RUN useradd --system --create-home --home-dir /data coterie
COPY --from=build /opt/coterie /opt/coterie
ENV PATH=/opt/coterie/bin:$PATH \
    PYTHONUNBUFFERED=1
USER coterie
# Unless COTERIE_STORE names a database, campaigns are in /data/coterie.db.
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# Addresses that others reach need a token of at least 20 characters: COTERIE_TOKEN.
ENTRYPOINT ["coterie", "serve", "--host", "0.0.0.0", "--port", "8000"]
