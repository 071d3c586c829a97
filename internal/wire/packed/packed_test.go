package packed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/packed"
)

// wire keeps messages in the form in which they would travel.
type wire struct{ sent [][]byte }

// begin and end are the two ends of wire, as gRPC uses them.
type (
	begin struct {
		grpc.ServerStream
		*wire
	}
	end struct {
		grpc.ClientStream
		*wire
	}
)

func (w begin) SendMsg(message any) error {
	content, err := proto.Marshal(message.(proto.Message))
	w.sent = append(w.sent, content)
	return err
}

func (w end) RecvMsg(message any) error {
	if len(w.sent) == 0 {
		return io.EOF
	}
	content := w.sent[0]
	w.sent = w.sent[1:]
	return proto.Unmarshal(content, message.(proto.Message))
}

// send lets a handler send messages through the interceptor.
func (w *wire) send(t interface{ Fatal(...any) }, messages ...proto.Message) {
	err := packed.Server(nil, begin{wire: w}, nil, func(_ any, stream grpc.ServerStream) error {
		for _, m := range messages {
			if err := stream.SendMsg(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *wire) receive(t interface{ Fatal(...any) }, into proto.Message) error {
	open := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string,
		...grpc.CallOption) (grpc.ClientStream, error) {
		return end{wire: w}, nil
	}
	stream, err := packed.Client(context.Background(), nil, nil, "", open)
	if err != nil {
		t.Fatal(err)
	}
	return stream.RecvMsg(into)
}

func TestSentMessagesArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 200)
		many := rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces")
		w := &wire{}
		var texts [][]byte
		var messages []proto.Message
		for _, p := range many {
			text := bytes.Repeat(p, rapid.IntRange(1, 500).Draw(t, "times"))
			texts = append(texts, text)
			messages = append(messages, &agentv1.TailReply{Data: bytes.Clone(text),
				Event: agentv1.TailEvent_TAIL_EVENT_END, UtcOffset: 7, Place: &agentv1.TailPlace{Offset: 9}})
		}
		w.send(t, messages...)
		for _, text := range texts {
			var got agentv1.TailReply
			if err := w.receive(t, &got); err != nil {
				t.Fatal(err)
			}
			want := &agentv1.TailReply{Data: text, Event: agentv1.TailEvent_TAIL_EVENT_END, UtcOffset: 7,
				Place: &agentv1.TailPlace{Offset: 9}}
			if !proto.Equal(&got, want) {
				t.Fatalf("got %d bytes, %v; want %d", len(got.GetData()), got.GetEvent(), len(text))
			}
		}
	})
}

func TestTextShrinksAndWhatCannotDoesNotGrow(t *testing.T) {
	text := []byte(strings.Repeat("I1120 14:29:59.123456    4711 kubelet.go:2345] \"SyncLoop ADD\" source=\"api\"\n",
		1000))
	noise := make([]byte, 100_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	for name, c := range map[string]struct {
		data []byte
		most int // bytes that travel
	}{
		"a log":         {text, len(text) / 7},
		"random bytes":  {noise, len(noise) + 10},
		"a few letters": {[]byte("a line\n"), 10},
		"nothing":       {nil, 0},
	} {
		for _, message := range []proto.Message{
			&agentv1.TailReply{Data: bytes.Clone(c.data)}, &agentv1.ReadReply{Data: bytes.Clone(c.data)},
			&agentv1.RunReply{Stdout: bytes.Clone(c.data)},
		} {
			want := proto.Clone(message)
			w := &wire{}
			w.send(t, message)
			if size := len(w.sent[0]); size > c.most {
				t.Errorf("%s, %T: %d bytes travel, want at most %d", name, message, size, c.most)
			}
			got := message.ProtoReflect().New().Interface()
			if err := w.receive(t, got); err != nil || !proto.Equal(got, want) {
				t.Errorf("%s, %T: %v, not what was sent", name, message, err)
			}
		}
	}
}

func TestOtherMessagesAreLeftAlone(t *testing.T) {
	w := &wire{}
	sent := &agentv1.PipeReply{Data: bytes.Repeat([]byte("x"), 1<<16)}
	w.send(t, sent)
	if len(w.sent[0]) < 1<<16 {
		t.Error("it is packed")
	}
	var got agentv1.PipeReply
	switch err := w.receive(t, &got); {
	case err != nil:
		t.Error(err)
	case !proto.Equal(&got, sent):
		t.Errorf("&got is %v, want %v", &got, sent)
	}
	if err := w.receive(t, &got); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

func TestInvalidBlocksAreErrors(t *testing.T) {
	for name, block := range map[string][]byte{
		"nonsense":                 []byte("no block at all"),
		"cut short":                {100, 0, 'a'},
		"more than there may be":   binary.AppendUvarint(nil, 1<<31),
		"a length that has no end": bytes.Repeat([]byte{0xff}, 20),
	} {
		content, err := proto.Marshal(&agentv1.ReadReply{Packed: block})
		if err != nil {
			t.Fatal(err)
		}
		var got agentv1.ReadReply
		if err := (&wire{sent: [][]byte{content}}).receive(t, &got); status.Code(err) != codes.DataLoss {
			t.Errorf("%s: %v, %d bytes", name, err, len(got.GetData()))
		}
	}
}
