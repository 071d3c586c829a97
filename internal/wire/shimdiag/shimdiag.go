// Package shimdiag asks a containerd-shim-runhcs-v1 for its goroutines, on the pipe on which it also serves containerd.
//
// The service is containerd.runhcs.v1.diag.ShimDiag (microsoft/hcsshim, internal/shimdiag/shimdiag.proto, since 0.8.7), the
// protocol ttrpc (containerd/ttrpc, PROTOCOL.md). This package makes the one call DiagStacks, and none of the service's others,
// which run programs in virtual machines and share folders with them. The module containerd/ttrpc is not used: with its log
// library it would make the agent larger, and this is one request and one reply.
package shimdiag

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	service = "containerd.runhcs.v1.diag.ShimDiag"
	method  = "DiagStacks"

	headerSize   = 10
	largestReply = 4 << 20 // bytes, the limit of ttrpc
	request      = 1       // message types
	response     = 2
)

// pipePrefix begins the names of the shims' pipes: cmd/containerd-shim-runhcs-v1/start.go. Only administrators can make pipes
// with this prefix.
const pipePrefix = `\\.\pipe\ProtectedPrefix\Administrators\containerd-shim-`

// Pipe returns the path of the pipe of a shim, by the namespace and the ID on its command line. ok is false if they cannot be
// parts of a name.
func Pipe(namespace, id string) (path string, ok bool) {
	for _, part := range []string{namespace, id} {
		if part == "" || len(part) > 128 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return "", false
		}
	}
	return pipePrefix + namespace + "-" + id + "-pipe", true
}

// RefusedError reports that the shim answered with an error, such as one of a shim that has no such service.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return "the shim refused: " + e.Text }

// Stacks returns the text of the goroutines of the shim at the other end of conn, and closes conn. If ctx ends before the
// reply, the error is that of ctx. If the shim accepted the request and has sent nothing until a deadline of ctx, it is
// fault.ErrSilent as well.
func Stacks(ctx context.Context, conn net.Conn) (string, error) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	text, accepted, err := ask(conn)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
		if accepted && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w: %w", fault.ErrSilent, err)
		}
	}
	if err != nil {
		return "", fmt.Errorf("ask the shim for its goroutines: %w", err)
	}
	return text, nil
}

// ask sends the request and reads the reply. accepted reports whether the request was written and no part of a reply has come.
func ask(conn io.ReadWriter) (text string, accepted bool, err error) {
	const stream = 1 // a client's streams have odd numbers
	var body []byte
	body = protowire.AppendString(protowire.AppendTag(body, 1, protowire.BytesType), service)
	body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), method)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	frame = binary.BigEndian.AppendUint32(frame, stream)
	frame = append(append(frame, request, 0), body...)
	if _, err := conn.Write(frame); err != nil {
		return "", false, err
	}
	var header [headerSize]byte
	if n, err := io.ReadFull(conn, header[:]); err != nil {
		return "", n == 0, err
	}
	size := binary.BigEndian.Uint32(header[:4])
	if size > largestReply || binary.BigEndian.Uint32(header[4:8]) != stream || header[8] != response {
		return "", false, errors.New("its reply is none of this protocol")
	}
	reply := make([]byte, size)
	if _, err := io.ReadFull(conn, reply); err != nil {
		return "", false, err
	}
	text, err = read(reply)
	return text, false, err
}

// read reads ttrpc's Response (status = 1, payload = 2), whose payload is a StacksResponse (stacks = 1).
func read(reply []byte) (string, error) {
	status, payload, err := fields(reply)
	if err != nil {
		return "", err
	}
	code, message, err := fieldsOfStatus(status)
	switch {
	case err != nil:
		return "", err
	case code != 0:
		return "", &RefusedError{Text: message}
	}
	stacks, _, err := fields(payload)
	return string(stacks), err
}

// fields returns the fields 1 and 2 of a message in which both have bytes.
func fields(message []byte) (first, second []byte, err error) {
	err = each(message, func(number protowire.Number, _ uint64, value []byte) {
		switch number {
		case 1:
			first = value
		case 2:
			second = value
		}
	})
	return first, second, err
}

// fieldsOfStatus returns code = 1 and message = 2 of a google.rpc.Status.
func fieldsOfStatus(status []byte) (code uint64, message string, err error) {
	err = each(status, func(number protowire.Number, varint uint64, value []byte) {
		switch number {
		case 1:
			code = varint
		case 2:
			message = string(value)
		}
	})
	return code, message, err
}

// each calls take for each field of a message, with its number and its value.
func each(message []byte, take func(number protowire.Number, varint uint64, value []byte)) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("its reply is damaged: %w", protowire.ParseError(n))
		}
		message = message[n:]
		var varint uint64
		var value []byte
		switch kind {
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("its reply is damaged: %w", protowire.ParseError(n))
		}
		take(number, varint, value)
		message = message[n:]
	}
	return nil
}
