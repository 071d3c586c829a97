package cluster

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// spdyServer answers exec as API servers before WebSocket do: by SPDY alone. The command is an echo that
// ends with its stdin; status writes how it ended.
func spdyServer(t *testing.T, status func(io.Writer)) *Cluster {
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
			case <-conn.CloseChan():
				t.Error("the client opens too few streams")
				return
			}
		}
		if _, err := io.Copy(by[corev1.StreamTypeStdout], by[corev1.StreamTypeStdin]); err != nil {
			t.Error(err)
		}
		status(by[corev1.StreamTypeError])
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
	c := spdyServer(t, func(w io.Writer) {
		_, _ = io.WriteString(w, `{"status":"Failure","reason":"NonZeroExitCode",`+
			`"details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`)
	})
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent)
	var got, stderr bytes.Buffer
	code, err := c.Stream(t.Context(), Pod{Namespace: "a", Name: "b"}, "c", []string{"echo"},
		ExecStreams{In: bytes.NewReader(sent), Out: &got, Err: &stderr})
	if err != nil || code != 7 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if !bytes.Equal(got.Bytes(), sent) {
		t.Errorf("%d bytes came back, not the %d that were sent", got.Len(), len(sent))
	}
}

// webSocketServer answers exec by WebSocket; send sends its messages, each of which begins with the number of its stream.
func webSocketServer(t *testing.T, send func(*websocket.Conn) error) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if err := send(conn); err != nil {
			t.Error(err)
		}
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_, _, _ = conn.ReadMessage() // until the client closes the connection
	}))
	t.Cleanup(server.Close)
	c, err := FromConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The attacker is a node, or a proxy before it, that sends messages which no API server sends.
func TestUnusualMessagesOfAWebSocket(t *testing.T) {
	large := bytes.Repeat([]byte("swdt"), 4<<20)
	message := func(stream byte, data []byte) []byte { return append([]byte{stream}, data...) }
	ended := message(remotecommand.StreamErr, []byte(`{"status":"Success"}`))
	binary := websocket.BinaryMessage
	for name, test := range map[string]struct {
		send  func(*websocket.Conn) error
		bytes int // of stdout
		fails bool
	}{
		"one message of 16 MiB": {func(c *websocket.Conn) error {
			return errors.Join(c.WriteMessage(binary, message(remotecommand.StreamStdOut, large)),
				c.WriteMessage(binary, ended))
		}, len(large), false},
		"a stream that does not exist": {func(c *websocket.Conn) error {
			return errors.Join(c.WriteMessage(binary, message(99, large)),
				c.WriteMessage(binary, message(remotecommand.StreamStdOut, []byte("out"))), c.WriteMessage(binary, ended))
		}, 3, false},
		"a message without a stream": {func(c *websocket.Conn) error { return c.WriteMessage(binary, nil) }, 0, true},
		"text":                       {func(c *websocket.Conn) error { return c.WriteMessage(websocket.TextMessage, ended) }, 0, true},
		"a status that is none": {func(c *websocket.Conn) error {
			return c.WriteMessage(binary, message(remotecommand.StreamErr, []byte("{")))
		}, 0, true},
		"no status": {func(*websocket.Conn) error { return nil }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout bytes.Buffer
			_, err := webSocketServer(t, test.send).Stream(t.Context(), Pod{Namespace: "a", Name: "b"}, "c",
				[]string{"echo"}, ExecStreams{Out: &stdout, Err: io.Discard})
			if (err != nil) != test.fails || stdout.Len() != test.bytes {
				t.Errorf("%d bytes, want %d: %.1000v", stdout.Len(), test.bytes, err)
			}
		})
	}
}

// The attacker is a node that reports the end of a command without end, to fill the memory of swdt.
func TestAStatusWithoutEndIsBounded(t *testing.T) {
	sent := 0
	ended := make(chan struct{})
	c := spdyServer(t, func(w io.Writer) {
		defer close(ended)
		for sent < 64*maxStatus {
			n, err := w.Write(make([]byte, 64<<10))
			sent += n
			if err != nil {
				return
			}
		}
	})
	_, err := c.Stream(t.Context(), Pod{Namespace: "a", Name: "b"}, "c", []string{"echo"},
		ExecStreams{In: bytes.NewReader(nil), Out: io.Discard, Err: io.Discard})
	if !errors.Is(err, errLongStatus) {
		t.Errorf("%.1000v", err)
	}
	<-ended
	if sent == 64*maxStatus {
		t.Errorf("all %d bytes were read", sent)
	}
}
