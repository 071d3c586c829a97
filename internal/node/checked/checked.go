// Package checked decodes the replies of gRPC servers that are not trusted: the agent of a node and
// its container runtime. Its codec refuses each message whose type has no checks, so that no reply
// reaches other code unchecked.
package checked

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// Incoming is a reply before it is decoded and checked. A client gives gRPC an Incoming instead of
// the message, because gRPC's own errors would hide the type of the client's errors.
type Incoming interface {
	// Decode decodes and checks a reply. If it refuses the reply, the Incoming keeps the reason.
	// data is valid only during the call.
	Decode(data []byte)
}

// Codec returns the codec of a client: it decodes replies into Incoming only, and encodes requests
// as protobuf.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

type codec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, to any) error {
	in, ok := to.(Incoming)
	if !ok {
		return fmt.Errorf("decode a %T: a message of this type would not be checked", to)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	in.Decode(buffer.ReadOnlyData())
	return nil
}
