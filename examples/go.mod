// A path of its own, so that the compiler refuses the internal packages of fermata.
module example.com/fermata-examples

go 1.26.0

require github.com/fermata-agent/fermata v0.0.0

require (
	github.com/aymanbagabas/go-udiff v0.4.1 // indirect
	github.com/creack/pty v1.1.24 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	golang.org/x/image v0.47.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
)

replace github.com/fermata-agent/fermata => ../
