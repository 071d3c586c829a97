package reply

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/checked"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// contract is the prefix of the full names of swdt's messages.
const contract = "swdt.agent.v1."

// longestStatus bounds an error's text and details, in bytes.
const longestStatus = 1 << 20

// Options returns the dial options with which a client connection to an agent checks all
// replies. If the caller's own interceptors change replies, the caller must pass them to
// gRPC before these options, so that the checks come first.
func Options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(checked.Codec())),
		grpc.WithMaxHeaderListSize(longestStatus),
		grpc.WithChainUnaryInterceptor(unary),
		grpc.WithChainStreamInterceptor(stream),
	}
}

// Error is returned for a reply that no agent of this build sends.
type Error struct {
	Method  string // Files/Hash
	Field   string // HashReply.sha256
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("refuse the node's answer to %s: %s %s; nothing of it was used. An unmodified agent never "+
		"sends this: "+
		`remove %s on the node to have the agent installed again, and if it happens again treat the node as taken over`,
		e.Method, e.Field, e.Problem, layout.Agents)
}

// incoming is a reply before it is decoded and checked.
type incoming struct {
	message proto.Message
	refused *Error
}

// result returns the error with which the call ends.
func (in *incoming) result(method string, err error) error {
	if err != nil {
		return err
	}
	if in.refused == nil {
		return nil
	}
	proto.Reset(in.message) // so that no caller uses the message by accident
	in.refused.Method = shortMethod(method)
	return in.refused
}

// shortMethod returns Files/Hash for /swdt.agent.v1.Files/Hash.
func shortMethod(method string) string {
	return strings.TrimPrefix(strings.TrimPrefix(method, "/"), contract)
}

// Decode implements checked.Incoming.
func (in *incoming) Decode(data []byte) { in.refused = decode(data, in.message) }

// decode decodes and checks a message from a node.
func decode(data []byte, message proto.Message) *Error {
	descriptor := message.ProtoReflect().Descriptor()
	if refused := scan(data, descriptor); refused != nil {
		return refused
	}
	if err := proto.Unmarshal(data, message); err != nil {
		return &Error{Field: string(descriptor.Name()), Problem: "is not a valid message (" + quote(err.Error()) + ")"}
	}
	return check(message)
}

func unary(ctx context.Context, method string, request, to any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	in := &incoming{message: to.(proto.Message)}
	err := invoke(ctx, method, request, in, cc, options...)
	if err == nil && in.refused == nil {
		in.refused = related(request, to)
	}
	return in.result(method, err)
}

func stream(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, d, cc, method, options...)
	if err != nil {
		return nil, err
	}
	return &receiver{ClientStream: s, method: method}, nil
}

// receiver checks the messages of one stream.
type receiver struct {
	grpc.ClientStream
	method string
	last   string // content of the reply that ended the stream; empty: more replies may follow
}

func (r *receiver) RecvMsg(to any) error {
	in := &incoming{message: to.(proto.Message)}
	err := r.ClientStream.RecvMsg(in)
	if err == nil && in.refused == nil && r.last != "" {
		in.refused = &Error{Field: string(in.message.ProtoReflect().Descriptor().Name()),
			Problem: "comes after " + r.last}
	}
	if err == nil {
		r.last = ending(to)
	}
	return in.result(r.method, err)
}

// ending returns the content that makes a reply the last one of its stream. For any
// other reply it returns "".
func ending(message any) string {
	switch m := message.(type) {
	case *agentv1.RunReply:
		if m.GetExited() {
			return "the program's exit code"
		}
	case *agentv1.SwapEvent:
		if m.GetOutcome() != nil {
			return "the transaction's outcome"
		}
	}
	return ""
}
