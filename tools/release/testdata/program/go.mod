module example.com/program

go 1.26.0

require aead.dev/minisign v0.3.0

require (
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
