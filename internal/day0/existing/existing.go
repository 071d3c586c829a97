// Package existing connects to a cluster that another tool has made, and that a document of kind
// Cluster names. It changes nothing: swdt neither makes nor deletes such a cluster, and only reads
// its kubeconfig.
//
//   - existing.go: the kubeconfig, and whether the API server accepts it
//   - subnets.go: the addresses of the document against those of the cluster
//
// The kubeconfig is read as kubectl and `swdt join --kubeconfig` read it. So it may name a program
// that signs in (an exec plugin), which is run with the first request, and not before.
package existing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
)

// field is the field of a document that names the cluster.
const field = "spec.controlPlane.existing"

// options returns the cluster that a document selects. An empty field leaves the choice to kubectl's
// rules.
func options(doc config.ClusterDocument) cluster.Options {
	spec := doc.Cluster.Spec.ControlPlane.Existing
	return cluster.Options{Kubeconfig: doc.Resolve(spec.Kubeconfig), Context: spec.Context}
}

// Open reads the kubeconfig of a document whose control plane is an existing one. It contacts nothing.
// The error is a *config.Error that names the document's field.
func Open(doc config.ClusterDocument) (*cluster.Cluster, error) {
	api, err := cluster.Open(options(doc))
	return api, inDocument(doc, err)
}

// Kubeconfig returns a kubeconfig with the document's context alone. Its error is that of Open.
func Kubeconfig(doc config.ClusterDocument) ([]byte, error) {
	text, err := cluster.Kubeconfig(options(doc))
	return text, inDocument(doc, err)
}

// ContextName returns the name of the document's context. Its error is that of Open.
func ContextName(doc config.ClusterDocument) (string, error) {
	name, err := cluster.ContextName(options(doc))
	return name, inDocument(doc, err)
}

// inDocument converts an error about the kubeconfig to a problem with the document's field that
// names the kubeconfig, since no flag names it. It returns any other error unchanged.
func inDocument(doc config.ClusterDocument, err error) error {
	var wrong *cluster.ConfigError
	if !errors.As(err, &wrong) {
		return err
	}
	what, remedy := "selects no cluster", "write the path of the cluster's kubeconfig, and the name of a context in it"
	if len(wrong.Files) > 0 {
		what += " in " + strings.Join(wrong.Files, ", ")
	}
	if wrong.Context != "" {
		what += fmt.Sprintf(", context %q", wrong.Context)
	}
	why := wrong.Why
	if why == "" {
		why = wrong.Err.Error()
	}
	return &config.Error{Problems: []config.Problem{doc.Problem(field, what+": "+why, remedy)}}
}

// Version contacts the API server and returns its version, such as v1.36.3. An API server that does
// not answer, or that does not let the kubeconfig's user list nodes, is an *UnusableError.
func Version(ctx context.Context, doc config.ClusterDocument, api *cluster.Cluster) (string, error) {
	if err := api.CheckCredentials(time.Now()); err != nil {
		return "", unusable(doc, err)
	}
	version, err := api.Version(ctx)
	if err != nil {
		return "", unusable(doc, err)
	}
	// A user without credentials may read the version too, so only another request shows whether the
	// API server accepts this user.
	_, err = api.Clientset().CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	err = api.Failure("list the nodes", cluster.Permission{Verb: "list", Resource: "nodes"},
		err)
	return version, unusable(doc, err)
}

// UnusableError reports that the API server of an existing cluster does not answer, or that it refuses
// the kubeconfig's user.
type UnusableError struct {
	Cluster string
	File    string // the file that has the cluster's document
	Line    int    // the line of the field
	Err     error
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("use the existing cluster %s (%s in %s:%d): %v", e.Cluster, field, e.File, e.Line, e.Err)
}

func (e *UnusableError) Unwrap() error { return e.Err }

// unusable converts an error about the access to the API server to an *UnusableError, and returns
// any other error unchanged.
func unusable(doc config.ClusterDocument, err error) error {
	var (
		unreachable  *cluster.UnreachableError
		unauthorized *cluster.UnauthorizedError
		forbidden    *cluster.ForbiddenError
		expired      *cluster.ExpiredError
		credentials  *cluster.CredentialError
	)
	refused := errors.As(err, &unauthorized) || errors.As(err, &forbidden) || errors.As(err, &expired) ||
		errors.As(err, &credentials)
	if refused || errors.As(err, &unreachable) {
		line := doc.Problem(field, "", "").Line
		return &UnusableError{Cluster: doc.Cluster.Metadata.Name, File: doc.File, Line: line, Err: err}
	}
	return err
}

// NotMadeProblem returns the problem of a document whose control plane is an existing one, for a
// command that works only on clusters that swdt makes.
func NotMadeProblem(doc config.ClusterDocument, remedy string) error {
	return &config.Error{Problems: []config.Problem{
		doc.Problem(field, "swdt did not make this cluster, and neither makes nor deletes it", remedy),
	}}
}
