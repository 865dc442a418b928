# The command line in a small image: docs/how-to/install.md shows how to run it.
ARG RUST=1.95.0

FROM rust:${RUST}-slim-bookworm AS build
ARG RUST
# Not the components of `rust-toolchain.toml`, which only checks need.
ENV RUSTUP_TOOLCHAIN=${RUST}
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --release -p tenterhook-cli \
    && install -D -t /out target/release/tenterhook target/release/tenterhook-shim

FROM debian:bookworm-slim
# Commands run in sh, snapshots need git, and hooks that call services need certificates.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 tenterhook \
    && install -d -o tenterhook -g tenterhook /work
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE-MIT LICENSE-APACHE crates/core/journal/src/rules/gitleaks.LICENSE /usr/local/share/doc/tenterhook/
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["tenterhook"]
CMD ["--help"]
