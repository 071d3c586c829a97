package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/swdt-dev/swdt/internal/wait"
)

// Kubelets imitate the kubelets of the nodes, as far as pods and exec need them.
type Kubelets interface {
	// Starts reports whether the kubelet of a node starts pods now. If it does, a pod that names the node
	// runs at once.
	Starts(node string) bool
	// Exec runs a command in a pod of the node, until the command or ctx ends. It returns ErrCut if the
	// stream breaks, as when the kubelet ends.
	Exec(ctx context.Context, node string, command []string, stdin io.Reader, stdout, stderr io.Writer) (code int,
		err error)
}

// ErrCut makes the API server cut a stream without a word.
var ErrCut = errors.New("the stream was cut")

// SetKubelets gives the nodes their kubelets. Without them, pods stay as they were made.
func (c *Cluster) SetKubelets(k Kubelets) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kubelets = k
}

func (c *Cluster) kubeletsOf() Kubelets {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kubelets
}

// startPod lets a new pod run if it names a node with a kubelet.
func (c *Cluster) startPod(pod object) {
	node, kubelets := text(pod, "spec", "nodeName"), c.kubeletsOf()
	if node == "" || kubelets == nil {
		return
	}
	if !kubelets.Starts(node) {
		pod["status"] = object{"phase": "Pending"}
		c.startLater(key{"pods", text(pod, "metadata", "namespace"), text(pod, "metadata", "name")})
		return
	}
	c.run(pod)
}

const (
	// laterPoll is how often a kubelet is asked again whether it starts pods, for laterLimit.
	laterPoll, laterLimit = 50 * time.Millisecond, 5 * time.Minute
)

// startLater lets a pod run as soon as the kubelet of its node starts pods, unless the pod is gone by then, or
// another program has reported its status.
func (c *Cluster) startLater(k key) {
	if !c.begin() {
		return
	}
	go func() {
		defer c.running.Done()
		_ = wait.Condition{Name: "the kubelet to start pods", Interval: laterPoll, Limit: laterLimit,
			Look: func(context.Context) error {
				pod, ok := c.store.get(k)
				kubelets := c.kubeletsOf()
				if ok && text(pod, "status", "phase") != "Pending" {
					return nil
				}
				if !ok || kubelets == nil || !kubelets.Starts(text(pod, "spec", "nodeName")) {
					return errors.New("it does not")
				}
				resource, _ := c.resource("", "v1", "pods")
				_, err := c.store.update(resource, k, func(before object) (object, error) {
					pod := copyOf(before)
					if text(pod, "status", "phase") == "Pending" {
						c.run(pod)
					}
					return pod, nil
				})
				return wait.StopIf(err != nil, err)
			}}.Wait(c.ctx)
	}()
}

// run sets the status of a pod that runs.
func (c *Cluster) run(pod object) {
	containers, _ := field(pod, "spec", "containers").([]any)
	var states []any
	for _, each := range containers {
		if spec, ok := each.(object); ok {
			states = append(states, object{"name": spec["name"], "image": spec["image"], "ready": true,
				"containerID": "containerd://" + strings.ReplaceAll(string(uuid.NewUUID()), "-", ""),
				"state":       object{"running": object{"startedAt": timestamp(c.now())}}})
		}
	}
	pod["status"] = object{"phase": "Running", "containerStatuses": states}
}

// answerExec answers an exec by WebSocket, with the protocol of remotecommand that closes single streams:
// v5.channel.k8s.io (k8s.io/apimachinery/pkg/util/remotecommand; the exit code is the cause ExitCode of a Status).
func (c *Cluster) answerExec(w http.ResponseWriter, r *http.Request, request Request) error {
	resource, _ := c.resource("", "v1", "pods")
	pod, ok := c.store.get(key{"pods", request.Namespace, request.Name})
	kubelets := c.kubeletsOf()
	create := request
	create.Verb = "create" // since Kubernetes 1.35 the upgrade to a WebSocket needs both verbs
	switch {
	case !c.allowed(create):
		return forbidden(create)
	case !ok:
		return apierrors.NewNotFound(groupResource(resource), request.Name)
	case kubelets == nil || text(pod, "status", "phase") != "Running":
		return apierrors.NewBadRequest("the pod does not run")
	case !websocket.IsWebSocketUpgrade(r):
		return apierrors.NewBadRequest("this server execs by WebSocket only")
	}
	up := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}, CheckOrigin: anyOrigin}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil // Upgrade has answered
	}
	defer conn.Close()
	s := &execStream{conn: conn}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stdin, fromClient := io.Pipe()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.read(fromClient)
		cancel()
	}()
	code, err := kubelets.Exec(ctx, text(pod, "spec", "nodeName"), r.URL.Query()["command"], stdin,
		s.channel(remotecommand.StreamStdOut), s.channel(remotecommand.StreamStdErr))
	stdin.Close()
	if errors.Is(err, ErrCut) || ctx.Err() != nil {
		return nil
	}
	s.end(code, err)
	// The client closes the connection. To close it before the client's last bytes are read would reset it, and
	// lose the result.
	limit := time.NewTimer(goodbye)
	defer limit.Stop()
	select {
	case <-gone:
	case <-limit.C:
	}
	return nil
}

// goodbye bounds the wait for a client to close its connection.
const goodbye = 5 * time.Second

// anyOrigin accepts each client: browsers do not call this server.
func anyOrigin(*http.Request) bool { return true }

// execStream has the channels of an exec in one WebSocket. Each message begins with its channel.
type execStream struct {
	conn    *websocket.Conn
	writing sync.Mutex
}

// read passes the client's messages on to stdin, until the client goes.
func (s *execStream) read(stdin *io.PipeWriter) {
	defer stdin.CloseWithError(io.ErrUnexpectedEOF)
	for {
		_, message, err := s.conn.ReadMessage()
		switch {
		case err != nil:
			return
		case len(message) == 2 && message[0] == remotecommand.StreamClose && message[1] == remotecommand.StreamStdIn:
			stdin.Close()
		case len(message) > 1 && message[0] == remotecommand.StreamStdIn:
			_, _ = stdin.Write(message[1:]) // fails if the command does not read
		}
	}
}

func (s *execStream) write(channel byte, data []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, data...))
}

// channel returns the writer of one channel.
func (s *execStream) channel(number byte) io.Writer { return channelWriter{s, number} }

type channelWriter struct {
	s      *execStream
	number byte
}

func (w channelWriter) Write(data []byte) (int, error) {
	if err := w.s.write(w.number, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// end sends the result of the command.
func (s *execStream) end(code int, err error) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	switch {
	case err != nil:
		status = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	case code != 0:
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason,
			Message: "command terminated with non-zero exit code",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
				{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code & 0xff)}}}}
	}
	document, err := json.Marshal(status)
	if err != nil {
		return
	}
	if s.write(remotecommand.StreamErr, document) == nil {
		s.writing.Lock()
		defer s.writing.Unlock()
		_ = s.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	}
}
