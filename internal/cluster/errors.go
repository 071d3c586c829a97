package cluster

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// ConfigError reports that no kubeconfig selects an API server and a user.
type ConfigError struct {
	Files   []string // the paths that were tried
	Context string   // the requested context
	Why     string   // an explanation in plain words; if Why is empty, Err is printed
	Remedy  string   // where to name another; default: the flags --kubeconfig and --context
	Err     error
}

func (e *ConfigError) Error() string {
	what := "read the kubeconfig"
	if len(e.Files) > 0 {
		what += " (" + strings.Join(e.Files, ", ") + ")"
	}
	if e.Context != "" {
		what += fmt.Sprintf(", context %q", e.Context)
	}
	why := e.Why
	if why == "" {
		why = e.Err.Error()
	}
	return fmt.Sprintf("%s: %s; %s", what, why,
		cmp.Or(e.Remedy, "name one with --kubeconfig or KUBECONFIG, a context with --context"))
}
func (e *ConfigError) Unwrap() error { return e.Err }

// NothingThere reports whether no kubeconfig exists at all. It is false for a kubeconfig that
// exists but is wrong.
func (e *ConfigError) NothingThere() bool { return clientcmd.IsEmptyConfig(e.Err) }

// UnreachableError reports an API server that did not answer, or whose answer cannot be
// trusted.
type UnreachableError struct {
	Doing  string
	Server string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s: no usable answer from the API server %s: %v; %s", e.Doing, e.Server, e.Err, e.remedy())
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// remedy returns the remedy for the likely cause, such as a kubeconfig of another cluster,
// a wrong address, or a server that does not answer.
func (e *UnreachableError) remedy() string {
	var (
		authority   x509.UnknownAuthorityError
		name        x509.HostnameError
		certificate x509.CertificateInvalidError
		resolve     *net.DNSError
	)
	switch {
	case errors.As(e.Err, &authority):
		return "is the kubeconfig of this cluster, or of an earlier one at the same address?"
	case errors.As(e.Err, &name):
		return "use an address that is in the API server's certificate, or set tls-server-name in the kubeconfig"
	case errors.As(e.Err, &certificate):
		return "compare this machine's clock with the certificate's dates"
	case errors.As(e.Err, &resolve):
		return "check the server's name in the kubeconfig"
	}
	return "is the cluster running, and the address in the kubeconfig right?"
}

// UnauthorizedError reports that the API server rejects the user's credentials.
type UnauthorizedError struct {
	Doing  string
	Server string
	Err    error
}

func (e *UnauthorizedError) Error() string {
	return fmt.Sprintf("%s: the API server %s does not accept the kubeconfig's credentials: %v; "+
		"have they expired, or is it another cluster's kubeconfig?", e.Doing, e.Server, e.Err)
}
func (e *UnauthorizedError) Unwrap() error { return e.Err }

// ForbiddenError reports that the API server accepts the user's credentials, but the user
// lacks a permission.
type ForbiddenError struct {
	Doing   string
	Missing Permission
	Err     error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s: the kubeconfig's user may not %s: %v; "+
		"use an administrator's kubeconfig, or have that granted (`kubectl auth can-i %s`)", e.Doing, e.Missing,
		e.Err, e.Missing)
}
func (e *ForbiddenError) Unwrap() error { return e.Err }

// NoNodeError reports that the cluster has no such Node.
type NoNodeError struct{ Node string }

func (e *NoNodeError) Error() string {
	return fmt.Sprintf("the cluster has no node %s; `kubectl get nodes` lists them", e.Node)
}

// noNode reports whether err is the API server's answer that the Node does not exist. A
// kubelet's own "not found" answer through the proxy is not a Status, and does not match.
func noNode(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) &&
		errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "nodes"
}

// Failure converts an error to one of this package's errors. The error is from a request that
// another package has made. doing is the attempted action, and needs is the permission that this
// action requires. Failure returns nil if err is nil.
func (c *Cluster) Failure(doing string, needs Permission, err error) error {
	return c.fail(doing, needs, err)
}

// fail converts err to one of this package's error types. If none of the types fits, fail only adds
// doing, the attempted action, to err. If err is nil, fail returns nil. needs is the permission
// that the action requires.
func (c *Cluster) fail(doing string, needs Permission, err error) error {
	var (
		transport *url.Error
		network   net.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case apierrors.IsUnauthorized(err):
		return &UnauthorizedError{Doing: doing, Server: c.server, Err: err}
	case apierrors.IsForbidden(err):
		return &ForbiddenError{Doing: doing, Missing: needs, Err: err}
	case c.credentialError(doing, err) != nil:
		return c.credentialError(doing, err)
	case errors.As(err, &transport), errors.As(err, &network), apierrors.IsServiceUnavailable(err):
		return &UnreachableError{Doing: doing, Server: c.server, Err: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
