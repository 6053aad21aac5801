# Two images of Weir. The whole, with what it runs workspaces in on one machine:
#
#   docker build -t weir .
#
# and, smaller, the portal and the agents of a Kubernetes cluster:
#
#   docker build --target cluster -t registry.example.org/weir:0.1.0 .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
ARG COMMIT=
RUN make build VERSION="$VERSION" COMMIT="$COMMIT"

# Any user may run it, with a read-only root; what it keeps is a volume.
FROM debian:bookworm-slim AS cluster
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates tini \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o 65532 -g 65532 -m 0700 /var/lib/weir
COPY --from=build /src/bin/weir /usr/local/bin/weir
COPY --from=build /src/LICENSE /usr/share/doc/weir/LICENSE
ENV WEIR_LISTEN=:8080 WEIR_DATA_DIR=/var/lib/weir
EXPOSE 8080 8443
USER 65532:65532
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/weir"]
CMD ["serve"]

# Sandboxes are made of user namespaces, which a container may use only where
# its engine lets it (Docker: --security-opt seccomp=unconfined --security-opt
# systempaths=unconfined); “weir serve” says so when they are forbidden.
FROM cluster
USER root
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap slirp4netns iproute2 jupyter-notebook \
 && rm -rf /var/lib/apt/lists/*
USER 65532:65532
