package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
	bootstraptoken "k8s.io/cluster-bootstrap/token/util"

	"github.com/swdt-dev/swdt/internal/wait"
)

// What tells our tokens from others, and for which node one is. The node's name
// is an annotation, since it may be longer than a label's value.
const (
	tokenOwnerLabel     = "app.kubernetes.io/managed-by"
	tokenOwner          = "swdt"
	tokenNodeAnnotation = "swdt.dev/node"
	// joiners is the group to which kubeadm's cluster gives what a node needs to
	// become one.
	joiners = "system:bootstrappers:kubeadm:default-node-token"
)

// TokenOptions say for whom a bootstrap token is.
type TokenOptions struct {
	Node string        // the node that will join with it
	TTL  time.Duration // default 15 minutes
}

// Token is a bootstrap token. Only Value gives its secret away: printed,
// logged or marshalled it is its id.
type Token struct {
	id, secret string
	Expires    time.Time
}

// ID names the token. It is no secret.
func (t Token) ID() string { return t.id }

// Value is the token as kubeadm takes it, id.secret.
func (t Token) Value() string { return bootstraptoken.TokenFromIDAndSecret(t.id, t.secret) }

func (t Token) String() string { return "bootstrap token " + t.id }

// Format keeps every verb, %#v and %x too, from reaching into the struct.
func (t Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// MarshalText is what JSON and YAML write.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue is what slog writes.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MintToken makes a short-lived bootstrap token for one node, and returns when
// the cluster accepts it: cluster-info is signed with it. Where that fails,
// there is no token left.
func (c *Cluster) MintToken(ctx context.Context, o TokenOptions) (Token, error) {
	if o.TTL == 0 {
		o.TTL = 15 * time.Minute
	}
	t, err := newToken(c.now(ctx).Add(o.TTL))
	if err != nil {
		return Token{}, err
	}
	secret := tokenSecret(t, o.Node)
	_, err = c.client.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	var refused apierrors.APIStatus
	if errors.As(err, &refused) { // so nothing was made
		return Token{}, c.mintFailed(o.Node, err)
	}
	if err != nil { // perhaps it was, and only the answer got lost
		err = c.mintFailed(o.Node, err)
	} else {
		err = c.awaitSignature(ctx, t)
	}
	if err != nil {
		return Token{}, c.takeBack(ctx, t, err)
	}
	return t, nil
}

func (c *Cluster) mintFailed(node string, err error) error {
	return c.fail("make a bootstrap token for "+node,
		Permission{Verb: "create", Resource: "secrets", Namespace: metav1.NamespaceSystem}, err)
}

// takeBack deletes a token that cannot be used, also when ctx is over.
func (c *Cluster) takeBack(ctx context.Context, t Token, because error) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	if err := c.DeleteToken(lasting, t); err != nil {
		return fmt.Errorf("%w (its token expires at %s, and is not deleted: %w)", because, t.Expires.Format(time.RFC3339), err)
	}
	return because
}

// afterCancel bounds the undoing of something when the work on it was cancelled.
const afterCancel = 3 * time.Second

// now is the API server's time, by which tokens expire; ours where it does not tell.
func (c *Cluster) now(ctx context.Context) time.Time {
	skew, err := c.ClockSkew(ctx)
	if err != nil || skew.Offset.Abs() <= skew.Uncertainty {
		return time.Now()
	}
	return time.Now().Add(skew.Offset)
}

func newToken(expires time.Time) (Token, error) {
	value, err := bootstraptoken.GenerateBootstrapToken()
	if err != nil {
		return Token{}, fmt.Errorf("make a bootstrap token: %w", err)
	}
	id, secret, _ := strings.Cut(value, ".")
	return Token{id: id, secret: secret, Expires: expires.UTC().Truncate(time.Second)}, nil
}

// tokenSecret is the token as the bootstrap signer, the token cleaner and the
// authenticator of the API server read it.
func tokenSecret(t Token, node string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   metav1.NamespaceSystem,
			Name:        bootstraptoken.BootstrapTokenSecretName(t.id),
			Labels:      map[string]string{tokenOwnerLabel: tokenOwner},
			Annotations: map[string]string{tokenNodeAnnotation: node},
		},
		Type: bootstrap.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrap.BootstrapTokenIDKey:               t.id,
			bootstrap.BootstrapTokenSecretKey:           t.secret,
			bootstrap.BootstrapTokenExpirationKey:       t.Expires.Format(time.RFC3339),
			bootstrap.BootstrapTokenUsageAuthentication: "true",
			bootstrap.BootstrapTokenUsageSigningKey:     "true",
			bootstrap.BootstrapTokenExtraGroupsKey:      joiners,
			bootstrap.BootstrapTokenDescriptionKey:      "swdt join of node " + node,
		},
	}
}

// awaitSignature waits until the controller manager has signed cluster-info with
// the token, without which kubeadm's discovery does not trust it.
func (c *Cluster) awaitSignature(ctx context.Context, t Token) error {
	const patience = 30 * time.Second
	waiting, cancel := context.WithTimeoutCause(ctx, patience, &UnsignedError{TokenID: t.id, After: patience})
	defer cancel()
	for {
		info, err := c.clusterInfo(waiting)
		switch {
		case ctx.Err() == nil && waiting.Err() != nil:
			return context.Cause(waiting)
		case err != nil:
			return err
		case !info.Exists:
			return &NoClusterInfoError{}
		case info.signedFor(t.id):
			return nil
		}
		if wait.For(waiting, pollInterval/2) != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("await that cluster-info is signed with bootstrap token %s: %w", t.id, context.Cause(ctx))
			}
			return context.Cause(waiting)
		}
	}
}

// UnsignedError: nobody signed cluster-info with a new token.
type UnsignedError struct {
	TokenID string
	After   time.Duration
}

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("await that cluster-info is signed with bootstrap token %s: not within %s; "+
		"does the controller manager run, with bootstrapsigner among its --controllers?", e.TokenID, e.After)
}

// NoClusterInfoError: the cluster was not made for nodes to join by token.
type NoClusterInfoError struct{}

func (*NoClusterInfoError) Error() string {
	return "read ConfigMap cluster-info in kube-public: there is none; " +
		"on a control plane of kubeadm: kubeadm init phase bootstrap-token"
}

// DeleteToken removes the token's Secret; one that is gone already is no error.
func (c *Cluster) DeleteToken(ctx context.Context, t Token) error {
	return c.deleteToken(ctx, bootstraptoken.BootstrapTokenSecretName(t.id), metav1.DeleteOptions{})
}

func (c *Cluster) deleteToken(ctx context.Context, secret string, o metav1.DeleteOptions) error {
	err := c.client.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, secret, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.fail("delete Secret "+secret,
		Permission{Verb: "delete", Resource: "secrets", Namespace: metav1.NamespaceSystem, Name: secret}, err)
}

// SweepTokens deletes the tokens that an interrupted swdt left for this node,
// and returns their ids.
func (c *Cluster) SweepTokens(ctx context.Context, node string) ([]string, error) {
	secrets, err := c.client.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{
		LabelSelector: tokenOwnerLabel + "=" + tokenOwner,
		FieldSelector: "type=" + string(bootstrap.SecretTypeBootstrapToken),
	})
	if err != nil {
		return nil, c.fail("look for bootstrap tokens of earlier runs",
			Permission{Verb: "list", Resource: "secrets", Namespace: metav1.NamespaceSystem}, err)
	}
	var swept []string
	for _, s := range secrets.Items {
		// The selectors are asked again: not every server knows every selector,
		// and what is deleted here is somebody's way into the cluster.
		ours := s.Labels[tokenOwnerLabel] == tokenOwner && s.Type == bootstrap.SecretTypeBootstrapToken
		if !ours || s.Annotations[tokenNodeAnnotation] != node {
			continue
		}
		if err := c.deleteToken(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}); err != nil {
			return swept, err
		}
		swept = append(swept, strings.TrimPrefix(s.Name, bootstrap.BootstrapTokenSecretPrefix))
	}
	return swept, nil
}
