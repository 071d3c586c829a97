// Package handshake exchanges the first messages between swdt and its agent on the
// agent's stdin and stdout, before gRPC uses the same stream:
//
//	agent → swdt   "SWDT-AGENT/1\n"           magic; swdt skips a shell's output before it
//	agent → swdt   64 hex digits, "\n"        SHA-256 of the agent's own executable
//	swdt  → agent  "SWDT/1\n"                 the hash is the expected one: continue with gRPC
//
// A peer that reads anything else closes the stream.
package handshake

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

const (
	magic  = "SWDT-AGENT/1\n"
	accept = "SWDT/1\n"
	// MaxNoise is how many bytes a login shell may print before the magic.
	MaxNoise = 64 << 10
)

// ErrRefused is the error that Serve returns if swdt did not accept the agent.
var ErrRefused = errors.New("the other side is not swdt, or expects another build of the agent")

// ErrNoise is the error of a stream without a first message.
var ErrNoise = fmt.Errorf("%d bytes without a greeting", MaxNoise)

// NoAgentError is returned by Dial if no agent responds. Output is the beginning of the text that
// the node printed instead of the handshake; the caller classifies the failure by this text.
type NoAgentError struct {
	Output []byte
	Err    error // how the stream ended
}

func (e *NoAgentError) Error() string { return fmt.Sprintf("no agent answered: %v", e.Err) }
func (e *NoAgentError) Unwrap() error { return e.Err }

// HashMismatchError is returned by Dial if the agent does not have the expected hash.
type HashMismatchError struct{ Want, Got string }

func (e *HashMismatchError) Error() string {
	return fmt.Sprintf("the agent on the node has the SHA-256 %.12s, not %.12s", e.Got, e.Want)
}

// Serve carries out the agent's side of the handshake. The parameter `hash` is the SHA-256 of the
// agent's own executable.
func Serve(rw io.ReadWriter, hash string) error {
	if _, err := io.WriteString(rw, magic+hash+"\n"); err != nil {
		return fmt.Errorf("greet swdt: %w", err)
	}
	answer := make([]byte, len(accept))
	if _, err := io.ReadFull(rw, answer); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if string(answer) != accept {
		return ErrRefused
	}
	return nil
}

// Dial carries out swdt's side: it waits for the agent with this hash and accepts it. It reads byte
// by byte and never past the handshake.
func Dial(rw io.ReadWriter, hash string) error {
	if err := skipToMagic(rw); err != nil {
		return err
	}
	line := make([]byte, hex.EncodedLen(32)+1)
	if _, err := io.ReadFull(rw, line); err != nil {
		return &NoAgentError{Err: fmt.Errorf("read the agent's hash: %w", err)}
	}
	if got := string(bytes.TrimRight(line, "\n")); got != hash {
		return &HashMismatchError{Want: hash, Got: got}
	}
	if _, err := io.WriteString(rw, accept); err != nil {
		return fmt.Errorf("accept the agent: %w", err)
	}
	return nil
}

func skipToMagic(r io.Reader) error {
	noise, err := SkipNoise(r, func(seen []byte) bool { return bytes.HasSuffix(seen, []byte(magic)) })
	if err != nil {
		return &NoAgentError{Output: noise, Err: err}
	}
	return nil
}

// SkipNoise skips the output of a login shell that comes before the first message of a protocol. It reads byte by
// byte, until the function isStart reports that the bytes seen so far end with the beginning of the first message.
// Otherwise it returns the bytes and the stream's error or, after MaxNoise bytes, ErrNoise.
func SkipNoise(r io.Reader, isStart func(seen []byte) bool) (seen []byte, err error) {
	one := make([]byte, 1)
	for len(seen) < MaxNoise {
		if _, err := io.ReadFull(r, one); err != nil {
			return seen, err
		}
		if seen = append(seen, one[0]); isStart(seen) {
			return seen, nil
		}
	}
	return seen, ErrNoise
}
