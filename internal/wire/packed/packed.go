// Package packed compresses the data that the agent reads from files and programs: a log shrinks to
// a seventh of its size. Compressing data with Snappy takes less time than SSH needs to send the
// bytes that compression saves. Data that hardly shrinks, such as compressed data, is sent
// unchanged.
package packed

import (
	"context"
	"fmt"

	"github.com/golang/snappy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

const (
	// least is the smallest size in bytes that is worth compressing.
	least = 1 << 10
	// most is the maximum size of an unpacked message in bytes: many times the size of the largest
	// message that the agent sends.
	most = 16 << 20
)

// parts returns the plain and the packed field of a message, or nil for a
// message of another kind.
func parts(message any) (plain, packed *[]byte) {
	switch m := message.(type) {
	case *agentv1.TailReply:
		return &m.Data, &m.Packed
	case *agentv1.ReadReply:
		return &m.Data, &m.Packed
	case *agentv1.RunReply:
		return &m.Stdout, &m.Packed
	}
	return nil, nil
}

// Server is an interceptor that packs the messages of a stream. An interceptor that inspects
// messages must be inside Server, so that it sees messages that are not packed yet.
func Server(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	return handle(server, &sender{ServerStream: stream})
}

type sender struct {
	grpc.ServerStream
	buffer []byte
}

// SendMsg packs the message's bytes into the stream's buffer. It reuses the buffer for each
// message, since gRPC no longer uses the buffer when SendMsg of the stream has returned.
func (s *sender) SendMsg(message any) error {
	if plain, packed := parts(message); plain != nil && len(*plain) >= least {
		if need := snappy.MaxEncodedLen(len(*plain)); len(s.buffer) < need {
			s.buffer = make([]byte, need)
		}
		if block := snappy.Encode(s.buffer, *plain); len(block) < len(*plain)*3/4 {
			*plain, *packed = nil, block
		}
	}
	return s.ServerStream.SendMsg(message)
}

// Client is an interceptor that unpacks the messages that Server has packed.
func Client(ctx context.Context, d *grpc.StreamDesc, to *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, d, to, method, options...)
	if err != nil {
		return nil, err
	}
	return &receiver{stream}, nil
}

type receiver struct{ grpc.ClientStream }

func (r *receiver) RecvMsg(message any) error {
	if err := r.ClientStream.RecvMsg(message); err != nil {
		return err
	}
	plain, packed := parts(message)
	if plain == nil || len(*packed) == 0 {
		return nil
	}
	text, err := unpack(*packed)
	if err != nil {
		return status.Error(codes.DataLoss, err.Error())
	}
	*plain, *packed = text, nil
	return nil
}

// unpack decompresses a block. It first checks the size that the block declares, since it
// allocates that much memory.
func unpack(block []byte) ([]byte, error) {
	size, err := snappy.DecodedLen(block)
	if err == nil && (size > most || size == 0) {
		err = fmt.Errorf("%d bytes", size)
	}
	var text []byte
	if err == nil {
		text, err = snappy.Decode(nil, block)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack the agent's message: %w", err)
	}
	return text, nil
}
