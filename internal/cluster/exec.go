package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
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
	stdout := &head{limit: limit}
	result, err := c.exec(ctx, pod, container, Streams{Stdout: stdout, StderrLimit: limit}, command)
	result.Stdout = stdout.String()
	return result, err
}

// Streams are the input and the outputs of a command in a container.
type Streams struct {
	Stdin  io.Reader // nil: the command has no input
	Stdout io.Writer
	// StderrLimit is the number of bytes of stderr that the result keeps.
	StderrLimit int
}

// ExecStream is Exec with input, and with output while the command runs. The command's input ends with
// s.Stdin. After ctx ends, ExecStream may still read from s.Stdin until the next read returns.
func (c *Cluster) ExecStream(ctx context.Context, pod Pod, container string, s Streams, command ...string) (ExecResult,
	error) {
	return c.exec(ctx, pod, container, s, command)
}

func (c *Cluster) exec(ctx context.Context, pod Pod, container string, s Streams, command []string) (ExecResult,
	error) {
	doing := "run a command in pod " + pod.String()
	if c.config == nil {
		return ExecResult{}, fmt.Errorf("%s: %w", doing, errors.ErrUnsupported)
	}
	request := c.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: s.Stdin != nil, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec)
	executor, err := c.executor(request)
	if err != nil {
		return ExecResult{}, fmt.Errorf("%s: %w", doing, err)
	}
	stderr := &head{limit: s.StderrLimit}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: s.Stdin, Stdout: s.Stdout, Stderr: stderr})
	result := ExecResult{Stderr: stderr.String()}
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		result.Code, err = exit.Code, nil
	}
	return result, c.fail(doing, podPermission("create", "pods/exec", pod), err)
}

// executor returns an executor that uses WebSocket, or SPDY if the API server or a proxy does not
// support WebSocket.
func (c *Cluster) executor(request *rest.Request) (remotecommand.Executor, error) {
	first, err := remotecommand.NewWebSocketExecutor(c.config, "GET", request.URL().String())
	if err != nil {
		return nil, err
	}
	second, err := remotecommand.NewSPDYExecutor(c.config, "POST", request.URL())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(first, second, func(err error) bool {
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

// head keeps the first bytes that are written to it, and drops the others.
type head struct {
	bytes.Buffer
	limit int
}

func (h *head) Write(data []byte) (int, error) {
	_, _ = h.Buffer.Write(data[:min(len(data), h.limit-h.Len())]) // a Buffer returns no error
	return len(data), nil
}
