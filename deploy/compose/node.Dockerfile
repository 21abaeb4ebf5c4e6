FROM golang:1.26 AS build
RUN CGO_ENABLED=0 go install github.com/fermata-agent/fermata/cmd/fermata@latest

FROM debian:stable-slim
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates && rm -rf /var/lib/apt/lists/* && useradd -m fermata && install -d -o fermata -m 700 /home/fermata/.fermata
COPY --from=build /go/bin/fermata /usr/local/bin/fermata
USER fermata
WORKDIR /home/fermata
ENTRYPOINT ["fermata"]
