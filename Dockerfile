# An image with one file: the static binary. Scripts are mounted, for example from a ConfigMap:
#
#   docker build -t kopf .
#   docker run --rm -v "$PWD/examples/01-minimal:/scripts:ro" -v "$HOME/.kube:/kube:ro" -e KUBECONFIG=/kube/config \
#     kopf run -A --standalone /scripts/handlers.lua
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN cp "$(scripts/build-static)" /kopf

FROM scratch
COPY --from=build /kopf /kopf
# Any user without rights.
USER 65532:65532
ENTRYPOINT ["/kopf"]
