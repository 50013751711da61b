# A server, a worker or an autoscaler: `docker build --tag penstock .`
# Extras: `docker build --build-arg EXTRAS=archive,postgres,spark --tag penstock:spark .`

FROM python:3.11-slim-bookworm AS build
ARG EXTRAS=postgres
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# The base image has pip already; without it the environment is 13 MB smaller.
RUN python -m venv --without-pip /opt/penstock \
 && pip --python /opt/penstock/bin/python install \
        --no-cache-dir --disable-pip-version-check -c constraints.txt ".[${EXTRAS}]"

FROM python:3.11-slim-bookworm
RUN groupadd --system --gid 10001 penstock \
 && useradd --system --uid 10001 --gid penstock --home-dir /data --no-create-home penstock \
 && install --directory --owner penstock --group penstock --mode 0700 /data
COPY --from=build /opt/penstock /opt/penstock
ENV PATH=/opt/penstock/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PENSTOCK_DATA=/data \
    PENSTOCK_SERVER_HOST=0.0.0.0 \
    PENSTOCK_AUTH_REQUIRED=always \
    PENSTOCK_LOG_FORMAT=json \
    PENSTOCK_WORKER_LOG_FORMAT=json
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 7654
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:7654/healthz', timeout=4)"]
ENTRYPOINT ["penstock"]
CMD ["serve"]
