package logs_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
)

// If a node lists ever more logs, the number of reads is limited.
func TestMoreLogsThanAreReadAtOnce(t *testing.T) {
	n := startNode(t)
	n.Put(`C:\var\log\kubelet\kubelet.log`, []byte("hello\n"))
	n.Tamper(func(_ string, _ int, reply proto.Message, send func(proto.Message) error) error {
		if of, ok := reply.(*agentv1.ListFilesReply); ok && len(of.GetEntries()) > 0 &&
			of.GetEntries()[0].GetPath() == `C:\var\log\kubelet\kubelet.log` {
			for i := range 5000 {
				of.Entries = append(of.Entries,
					&agentv1.FileInfo{Path: fmt.Sprintf(`C:\var\log\kubelet\kubelet.%d.log`, i), Size: 1})
			}
		}
		return send(reply)
	})
	n.Calls()
	_, err := show(t, n, logs.Options{Sources: []string{`file:C:\var\log\kubelet\*.log`}, Tail: -1})
	var many *logs.TooManyError
	if !errors.As(err, &many) {
		t.Fatalf("got %v", err)
	}
	if calls := n.Calls(); len(calls) > 100 {
		t.Errorf("%d calls", len(calls))
	}
}
