package cluster

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// spdyServer answers exec as API servers before WebSocket do: by SPDY alone. The command is an echo that
// ends with its stdin.
func spdyServer(t *testing.T) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "unable to upgrade: only SPDY is supported", http.StatusBadRequest)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{remotecommand.StreamProtocolV4Name}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 4)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if conn == nil {
			return
		}
		defer conn.Close()
		by := map[string]httpstream.Stream{}
		for len(by) < 4 {
			select {
			case s := <-streams:
				by[s.Headers().Get(corev1.StreamType)] = s
			case <-time.After(10 * time.Second):
				t.Error("the client opens too few streams")
				return
			}
		}
		if _, err := io.Copy(by[corev1.StreamTypeStdout], by[corev1.StreamTypeStdin]); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(by[corev1.StreamTypeError], `{"status":"Failure","reason":"NonZeroExitCode",`+
			`"details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`)
		for _, s := range by {
			_ = s.Close()
		}
	}))
	t.Cleanup(server.Close)
	c, err := FromConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAStreamFallsBackToSPDY(t *testing.T) {
	c := spdyServer(t)
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent)
	var got, errors bytes.Buffer
	code, err := c.Stream(t.Context(), Pod{Namespace: "a", Name: "b"}, "c", []string{"echo"},
		ExecStreams{In: bytes.NewReader(sent), Out: &got, Err: &errors})
	if err != nil || code != 7 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if !bytes.Equal(got.Bytes(), sent) {
		t.Errorf("%d bytes came back, not the %d that were sent", got.Len(), len(sent))
	}
}
