//go:build unix

package process

// maxArguments bounds the command line that is read, in bytes.
const maxArguments = 256 << 10
