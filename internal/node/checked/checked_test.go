package checked_test

import (
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/swdt-dev/swdt/internal/node/checked"
)

type incoming struct{ data string }

func (in *incoming) Decode(data []byte) { in.data = string(data) }

func TestOnlyCheckedMessagesAreDecoded(t *testing.T) {
	reply := func() mem.BufferSlice { // in two pieces
		return mem.BufferSlice{mem.SliceBuffer("\x08"), mem.SliceBuffer("\x05")}
	}
	in := &incoming{}
	if err := checked.Codec().Unmarshal(reply(), in); err != nil {
		t.Fatal(err)
	}
	if in.data != "\x08\x05" {
		t.Errorf("decoded %q, want %q", in.data, "\x08\x05")
	}
	unchecked := &durationpb.Duration{}
	if err := checked.Codec().Unmarshal(reply(), unchecked); err == nil {
		t.Error("a message without checks was decoded")
	}
	if unchecked.GetSeconds() != 0 {
		t.Errorf("the message has %d seconds, want 0", unchecked.GetSeconds())
	}
}
