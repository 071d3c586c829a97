package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// FailedError reports a failed phase of joining, with its likely cause.
type FailedError struct {
	Phase string // the name of the step that failed
	// Log has the last log lines of the service on which the phase depends. LogFile is the path
	// of that log on the node.
	Log     []string
	LogFile string
	// Conditions are those conditions of the Node that have another status than on a Ready node.
	Conditions []cluster.Condition
	// Cause is the likely cause; empty: not known.
	Cause string
	Err   error
}

func (e *FailedError) Error() string {
	var b strings.Builder
	b.WriteString(e.Err.Error())
	if e.Cause != "" {
		b.WriteString("\nlikely cause: " + e.Cause)
	}
	for _, c := range e.Conditions {
		fmt.Fprintf(&b, "\ncondition %s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	if len(e.Log) > 0 {
		fmt.Fprintf(&b, "\nlast lines of %s:\n  %s", e.LogFile, strings.Join(e.Log, "\n  "))
	}
	return b.String()
}

func (e *FailedError) Unwrap() error { return e.Err }

// KubeadmError reports a kubeadm that ended with an error.
type KubeadmError struct {
	ExitCode int
	Output   string // without the token
}

func (e *KubeadmError) Error() string {
	lines := strings.Split(e.Output, "\n")
	const shown = 15
	return fmt.Sprintf("kubeadm join ended with exit code %d:\n  %s", e.ExitCode,
		strings.Join(lines[max(0, len(lines)-shown):], "\n  "))
}

const (
	logLines    = 20
	lookedFor   = 10 * time.Second
	reachWithin = 3 * time.Second
)

// failed adds the likely cause to the error of a failed phase. It asks the node and the
// cluster for details, and omits each detail that they do not supply.
func (j *joining) failed(ctx context.Context, n *node.Node, phase, name string, err error) error {
	if ctx.Err() != nil || lost(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookedFor)
	defer cancel()
	failed := &FailedError{Phase: phase, Err: err}
	failed.LogFile, failed.Log = lastLog(ctx, n, name)
	failed.Conditions = j.badConditions(ctx, n)
	failed.Cause = j.likelyCause(ctx, n)
	return failed
}

// lastLog returns the last lines of a service's log, unless an earlier run of the
// service wrote them.
func lastLog(ctx context.Context, n *node.Node, name string) (file string, lines []string) {
	is, err := service(ctx, n, name)
	if err != nil || is == nil || neverStarted(is) {
		return "", nil
	}
	file, lines, err = push.LogLines(ctx, n, name, logLines)
	if err != nil {
		return "", nil
	}
	return file, lines
}

// neverStarted reports whether a service has not been started since it was registered
// or the machine booted.
func neverStarted(s *agentv1.ServiceReply) bool {
	const errorServiceNeverStarted = 1077
	return s.GetStatus().GetExitCode() == errorServiceNeverStarted
}

// badConditions returns those conditions of the Node that have another status than on a Ready node.
// It returns none if the cluster cannot be asked.
func (j *joining) badConditions(ctx context.Context, n *node.Node) []cluster.Condition {
	name, err := j.nodeName(ctx, n)
	if err != nil || j.options.Cluster == nil {
		return nil
	}
	object, err := j.options.Cluster.Node(ctx, name)
	if err != nil {
		return nil
	}
	var bad []cluster.Condition
	for _, c := range object.Conditions {
		if wanted := map[bool]string{true: "True", false: "False"}[c.Type == "Ready"]; c.Status != wanted {
			bad = append(bad, c)
		}
	}
	return bad
}

// likelyCause checks the most frequent causes, from containerd up to the pod network, and
// returns the first that applies.
func (j *joining) likelyCause(ctx context.Context, n *node.Node) string {
	for _, look := range []func(context.Context, *node.Node) string{j.causeInContainerd, j.causeInReach,
		j.causeInKubelet, j.causeInNetwork} {
		if cause := look(ctx, n); cause != "" {
			return cause
		}
	}
	return ""
}

func (j *joining) causeInContainerd(ctx context.Context, n *node.Node) string {
	is, err := service(ctx, n, containerdName)
	switch {
	case err != nil || is == nil:
		return ""
	case stopped(is):
		return fmt.Sprintf("containerd is not running (%s): see %s", exitOf(is), j.spec.Containerd.LogFile)
	}
	if _, err := n.Network.CRIVersion(ctx, &agentv1.CRIVersionRequest{Pipe: v1alpha1.ContainerdPipe}); err != nil {
		return "containerd is running but does not answer on its pipe: " + err.Error()
	}
	return ""
}

func (j *joining) causeInReach(ctx context.Context, n *node.Node) string {
	request := &agentv1.ReachRequest{Address: j.endpoint(), Timeout: durationpb.New(reachWithin)}
	reply, err := n.Network.Reach(ctx, request)
	if err != nil || reply.GetOutcome() == agentv1.ReachOutcome_REACH_OUTCOME_REACHED {
		return ""
	}
	return fmt.Sprintf("the node does not reach the API server at %s (%s): check join.controlPlaneEndpoint, "+
		"join.controlPlaneAlias and the network between them",
		j.endpoint(), strings.TrimSpace(word.Of(reply.GetOutcome())+" "+reply.GetDetail()))
}

func (j *joining) causeInKubelet(ctx context.Context, n *node.Node) string {
	is, err := service(ctx, n, kubeletName)
	if err != nil || is == nil || !stopped(is) || is.GetStatus().GetExitCode() == 0 || neverStarted(is) {
		return ""
	}
	return fmt.Sprintf("kubelet ended by itself (%s): see its log", exitOf(is))
}

// causeInNetwork checks the pod network, which the cluster's CNI installs: without a pod network,
// no node becomes Ready.
func (j *joining) causeInNetwork(ctx context.Context, n *node.Node) string {
	reply, err := n.Network.CRIStatus(ctx, &agentv1.CRIStatusRequest{Pipe: v1alpha1.ContainerdPipe})
	if err != nil {
		return ""
	}
	var status criv1.StatusResponse
	if err := proto.Unmarshal(reply.GetStatus(), &status); err != nil {
		return ""
	}
	for _, c := range status.GetStatus().GetConditions() {
		if c.GetType() == criv1.NetworkReady && !c.GetStatus() {
			return fmt.Sprintf("containerd has no pod network yet (%s): install the cluster's network for Windows "+
				"nodes; it puts its configuration into %s",
				c.GetMessage(), j.spec.Containerd.CNI.ConfigDirectory)
		}
	}
	return ""
}

// lost reports whether the connection to the node broke.
func lost(err error) bool {
	var gone *node.LostError
	return errors.As(err, &gone)
}
