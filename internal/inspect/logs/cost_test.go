package logs

import (
	"bytes"
	"fmt"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/ui"
)

// discarded counts records.
type discarded struct{ bytes int }

func (d *discarded) Record(r Record) error {
	d.bytes += len(r.Raw) + len(r.Text)
	return nil
}
func (d *discarded) Flush() error { return nil }

// BenchmarkALogFromTheWireToTheSink measures the cost of a block of a log on your machine,
// for parsed lines and for unparsed ones.
func BenchmarkALogFromTheWireToTheSink(b *testing.B) {
	var block bytes.Buffer
	for i := 0; block.Len() < 256<<10; i++ {
		fmt.Fprintf(&block,
			"I1120 14:29:59.%06d    4242 kubelet.go:2343] \"SyncLoop (PLEG): event for pod\" pod=\"default/web-0\"\n",
			i)
	}
	pattern, err := Compile("web-[1-9]")
	if err != nil {
		b.Fatal(err)
	}
	for name, o := range map[string]Options{
		"let through": {Tail: -1, Verbatim: true}, "looked at": {Tail: -1}, "searched": {Tail: -1, Grep: pattern},
	} {
		b.Run(name, func(b *testing.B) {
			sink := &discarded{}
			m := NewMerger(false, sink)
			in := m.Begin()
			ended := make(chan error, 1)
			go func() { ended <- m.Run(b.Context()) }()
			t := &tail{lines: newLines(File{Source: "kubelet"}, o, everyLine), in: in, reporter: ui.Discard{}}
			if o.Verbatim {
				t.lines.verbatim = func() bool { return true }
			}
			b.SetBytes(int64(block.Len()))
			for b.Loop() {
				if err := t.lines.reply(b.Context(), &agentv1.TailReply{Data: bytes.Clone(block.Bytes())},
					in); err != nil {
					b.Fatal(err)
				}
			}
			in.Close(b.Context())
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
			if o.Grep == nil && sink.bytes == 0 {
				b.Error("nothing came")
			}
		})
	}
}
