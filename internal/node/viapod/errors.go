package viapod

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// RefusedError reports that the cluster or the node's settings keep swdt out until a person has changed
// something.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// Refused implements the declaration of carrier.IsRefusal.
func (e *RefusedError) Refused() bool { return true }

// DeniedError reports a rule of RBAC that is missing.
type DeniedError struct {
	Missing   cluster.Permission
	Namespace string // of the pods; "": DefaultNamespace
	Err       error
}

func (e *DeniedError) Error() string {
	prints := "`swdt status --via kubernetes --print-rbac`"
	if e.Namespace != "" && e.Namespace != DefaultNamespace {
		prints = fmt.Sprintf("`swdt status --via kubernetes,namespace=%s --print-rbac`", e.Namespace)
	}
	return fmt.Sprintf("%v; %s prints the role that swdt needs", e.Err, prints)
}
func (e *DeniedError) Unwrap() error { return e.Err }

// Refused implements the declaration of carrier.IsRefusal.
func (e *DeniedError) Refused() bool { return true }

// StartingError reports that the API server has refused a request while it was starting.
type StartingError struct{ Err error }

func (e *StartingError) Error() string { return "the API server is not ready: " + e.Err.Error() }
func (e *StartingError) Unwrap() error { return e.Err }

// Refused implements the declaration of carrier.IsRefusal: a later attempt may succeed.
func (e *StartingError) Refused() bool { return false }

// KubeletDownError reports that the node's kubelet has stopped reporting, so that no pod starts.
type KubeletDownError struct {
	Node    string
	Since   time.Time
	Message string
}

func (e *KubeletDownError) Error() string {
	return fmt.Sprintf("the kubelet of node %s does not report since %s (%s): no way through the cluster leads to a "+
		"node without a kubelet; reach it by SSH (spec.credentials.hostname) or at its console, and start the "+
		"service kubelet", e.Node, e.Since.UTC().Format(time.RFC3339), shortened(e.Message))
}

// OpenNamespaceError reports that others may get into the pods of the namespace, and so become SYSTEM on
// the nodes.
type OpenNamespaceError struct {
	Namespace string
	Who       []string // with the way by which they get in
}

func (e *OpenNamespaceError) Error() string {
	return fmt.Sprintf("refuse to use namespace %s: whoever gets into its pods is SYSTEM on the node, and this is "+
		"allowed to %s; take that away, name another namespace, or accept it with `swdt status --via kubernetes,shared`",
		e.Namespace, strings.Join(e.Who, " and to "))
}

// Refused implements the declaration of carrier.IsRefusal.
func (e *OpenNamespaceError) Refused() bool { return true }

// NotAdmittedError reports that the API server has refused the pod, although RBAC allows it: an admission
// plugin or a quota.
type NotAdmittedError struct {
	Namespace string
	Err       error
}

func (e *NotAdmittedError) Error() string {
	return fmt.Sprintf("make a HostProcess pod in namespace %s: the API server admits none: %s; does the namespace "+
		"have the label pod-security.kubernetes.io/enforce=privileged, and has it a quota or a policy?", e.Namespace,
		shortened(e.Err.Error()))
}
func (e *NotAdmittedError) Unwrap() error { return e.Err }

// Refused implements the declaration of carrier.IsRefusal.
func (e *NotAdmittedError) Refused() bool { return true }

// NotStartedError reports that the pod was made and does not run.
type NotStartedError struct {
	Node    string
	Cause   string
	Remedy  string
	final   bool // waiting does not help
	pulling bool // the node pulls the image
	image   bool // another image may start
}

func (e *NotStartedError) Error() string {
	text := fmt.Sprintf("start a HostProcess pod on node %s: %s", e.Node, e.Cause)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Refused implements the declaration of carrier.IsRefusal.
func (e *NotStartedError) Refused() bool { return e.final }

// fail converts the error of a request to an error of this package or of package cluster.
func (w *Way) fail(doing string, needs cluster.Permission, err error) error {
	return asDenied(w.c.Failure(doing, needs, err), w.o.Namespace)
}

// asDenied converts the errors of package cluster that are refusals. The namespace is that of the pods, or "".
func asDenied(err error, namespace string) error {
	var forbidden *cluster.ForbiddenError
	var unauthorized *cluster.UnauthorizedError
	switch {
	case errors.As(err, &forbidden):
		return &DeniedError{Missing: forbidden.Missing, Namespace: namespace, Err: err}
	case errors.As(err, &unauthorized):
		return &RefusedError{err}
	}
	return err
}

// longest bounds the texts of the cluster in errors, in characters.
const longest = 300

func shortened(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return string(runes)
}
