# The program on a small system with git and a shell, for work in a container:
#   docker build -t fermata . && docker run -it -v "$PWD:/work" -v fermata-home:/home/fermata fermata
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /fermata ./cmd/fermata

FROM alpine:3
RUN apk add --no-cache bash ca-certificates git ripgrep && adduser -D -u 1000 fermata
COPY --from=build /fermata /usr/local/bin/fermata
USER fermata
WORKDIR /work
ENTRYPOINT ["fermata"]
