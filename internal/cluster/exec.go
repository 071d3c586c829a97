package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// The requests below go through the API server to the node's kubelet, and from there to the container.

// ExecResult is the result of a command in a container.
type ExecResult struct {
	Code           int // the command's exit code
	Stdout, Stderr string
}

// Exec runs a command in a pod's container, without a shell and without input. It keeps the first
// limit bytes of each output. A command that ends with an exit code is no error, whatever the code;
// an error means that the command could not be run, or that its end is unknown.
func (c *Cluster) Exec(ctx context.Context, pod Pod, container string, limit int, command ...string) (ExecResult,
	error) {
	stdout, stderr := &Head{Limit: limit}, &Head{Limit: limit}
	code, err := c.Stream(ctx, pod, container, command, ExecStreams{Out: stdout, Err: stderr})
	return ExecResult{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}, err
}

// ExecStreams are the streams of a command in a container. In may be nil. The command's stdin ends with
// In.
type ExecStreams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Stream runs a command in a pod's container, without a shell, until the command or ctx ends. A command
// that ends with an exit code is no error, as for Exec. If the command ends first, a read of In that
// blocks may still be under way when Stream returns, so the caller must then end In.
func (c *Cluster) Stream(ctx context.Context, pod Pod, container string, command []string, s ExecStreams) (code int,
	err error) {
	doing := "run a command in pod " + pod.String()
	if c.config == nil {
		return 0, fmt.Errorf("%s: %w", doing, errors.ErrUnsupported)
	}
	request := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: s.In != nil, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec)
	var refused *httpstream.UpgradeFailureError // of the WebSocket
	executor, err := c.executor(request, &refused)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	silent := klog.NewContext(ctx, klog.New(nil)) // client-go would log the end of a stream to stderr
	err = executor.StreamWithContext(silent, remotecommand.StreamOptions{Stdin: s.In, Stdout: s.Out, Stderr: s.Err})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return exit.Code, nil
	}
	// The error of SPDY is only a text; the WebSocket before it has the API server's status.
	var status apierrors.APIStatus
	if err != nil && refused != nil && errors.As(refused.Cause, &status) {
		err = refused.Cause
	}
	return 0, c.fail(doing, podPermission("create", "pods/exec", pod), err)
}

// executor returns an executor that uses WebSocket, or SPDY if the API server or a proxy does not
// support WebSocket. It sets refused to the error of the WebSocket unless SPDY replaces it.
func (c *Cluster) executor(request *rest.Request, refused **httpstream.UpgradeFailureError) (remotecommand.Executor,
	error) {
	config := rest.CopyConfig(c.config)
	config.Timeout = 0 // it would bound the stream as a whole
	first, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	wrapper, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	second, err := remotecommand.NewSPDYExecutorForTransports(wrapper,
		boundedUpgrader{upgrader, func() { *refused = nil }}, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(first, second, func(err error) bool {
		errors.As(err, refused)
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// PodLog returns the last lines of a container's log, at most limit bytes of them.
func (c *Cluster) PodLog(ctx context.Context, pod Pod, container string, lines, limit int64) (string, error) {
	body, err := c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: &lines, LimitBytes: &limit,
	}).Stream(ctx)
	var text []byte
	if err == nil {
		defer body.Close()
		text, err = io.ReadAll(io.LimitReader(body, limit))
	}
	return string(text), c.fail("read the log of pod "+pod.String(), podPermission("get", "pods/log", pod), err)
}

func podPermission(verb, resource string, pod Pod) Permission {
	return Permission{Verb: verb, Resource: resource, Namespace: pod.Namespace, Name: pod.Name}
}

// Head is a writer that keeps the first Limit bytes. A command whose context has ended may still write into it.
type Head struct {
	Limit int

	mu   sync.Mutex
	kept bytes.Buffer
}

func (h *Head) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = h.kept.Write(data[:min(len(data), h.Limit-h.kept.Len())]) // a Buffer returns no error
	return len(data), nil
}

// String returns what was kept so far.
func (h *Head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kept.String()
}
