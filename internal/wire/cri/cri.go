// Package cri queries a container runtime for its version and its status over the Container Runtime
// Interface (runtime.v1). It encodes the few bytes of these calls itself, since the generated API
// and a gRPC or HTTP client would add megabytes to the agent.
package cri

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
)

// Full gRPC method names.
const (
	MethodVersion = "/runtime.v1.RuntimeService/Version"
	MethodStatus  = "/runtime.v1.RuntimeService/Status"
)

// VersionInfo is runtime.v1.VersionResponse.
type VersionInfo struct {
	Version           string // version of the kubelet runtime API
	RuntimeName       string // for example containerd
	RuntimeVersion    string // for example v1.7.12
	RuntimeAPIVersion string // for example v1
}

// Version queries the runtime to which the function `dial` connects.
func Version(ctx context.Context, dial func(context.Context) (net.Conn, error)) (VersionInfo, error) {
	reply, err := ask(ctx, dial, MethodVersion, nil)
	if err != nil {
		return VersionInfo{}, err
	}
	return decodeVersion(reply)
}

// Status queries the runtime for its status, and returns the
// runtime.v1.StatusResponse unchanged. If verbose is set, the response includes
// the runtime's own configuration.
func Status(ctx context.Context, dial func(context.Context) (net.Conn, error), verbose bool) ([]byte, error) {
	var request []byte
	if verbose {
		request = protowire.AppendTag(request, 1, protowire.VarintType)
		request = protowire.AppendVarint(request, 1)
	}
	return ask(ctx, dial, MethodStatus, request)
}

func ask(ctx context.Context, dial func(context.Context) (net.Conn, error), method string,
	message []byte) ([]byte, error) {
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	reply, err := call(conn, method, message)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return reply, err
}

// EncodeVersion returns the wire form of a version, for simulated runtimes.
func EncodeVersion(v VersionInfo) []byte {
	var b []byte
	for i, field := range []string{v.Version, v.RuntimeName, v.RuntimeVersion, v.RuntimeAPIVersion} {
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendString(b, field)
	}
	return b
}

func decodeVersion(b []byte) (VersionInfo, error) {
	var v VersionInfo
	fields := []*string{&v.Version, &v.RuntimeName, &v.RuntimeVersion, &v.RuntimeAPIVersion}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return VersionInfo{}, fmt.Errorf("decode the CRI version: %w", protowire.ParseError(n))
		}
		b = b[n:]
		if kind == protowire.BytesType && number >= 1 && int(number) <= len(fields) {
			text, n := protowire.ConsumeString(b)
			if n < 0 {
				return VersionInfo{}, fmt.Errorf("decode the CRI version: %w", protowire.ParseError(n))
			}
			*fields[number-1] = text
			b = b[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(number, kind, b)
		if n < 0 {
			return VersionInfo{}, fmt.Errorf("decode the CRI version: %w", protowire.ParseError(n))
		}
		b = b[n:]
	}
	return v, nil
}

// RawCodec passes messages through gRPC as unchanged bytes.
type RawCodec struct{}

// Marshal returns v, which must be a []byte.
func (RawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, errors.New("a raw message is a []byte")
	}
	return b, nil
}

// Unmarshal stores data in v, which must be a *[]byte.
func (RawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errors.New("a raw message is read into a *[]byte")
	}
	*b = append([]byte(nil), data...)
	return nil
}

// Name returns "proto" as the content subtype, so that the runtime reads the
// bytes as ordinary protobuf.
func (RawCodec) Name() string { return "proto" }
