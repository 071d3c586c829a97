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

// Labels and annotations that mark a token as swdt's and name its node. The node's name is
// in an annotation, since it may be longer than a label's value.
const (
	tokenOwnerLabel     = "app.kubernetes.io/managed-by"
	tokenOwner          = "swdt"
	tokenNodeAnnotation = "swdt.dev/node"
	// joiners is the group to which kubeadm grants the rights that a machine needs to become a
	// node.
	joiners = "system:bootstrappers:kubeadm:default-node-token"
)

// TokenOptions configure a bootstrap token.
type TokenOptions struct {
	Node string        // the node that will join with the token
	TTL  time.Duration // default 15 minutes
}

// Token is a bootstrap token. Only Value returns its secret. A Token that is printed,
// logged or marshalled shows only its id.
type Token struct {
	id, secret string
	Expires    time.Time
}

// ID returns the token's public id.
func (t Token) ID() string { return t.id }

// Value returns the token in kubeadm's format, id.secret.
func (t Token) Value() string { return bootstraptoken.TokenFromIDAndSecret(t.id, t.secret) }

func (t Token) String() string { return "bootstrap token " + t.id }

// Format prevents every verb, including %#v and %x, from printing the struct's fields.
func (t Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// MarshalText returns the id, for JSON and YAML.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue returns the id, for slog.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MintToken makes a short-lived bootstrap token for one node. It returns as soon as the cluster
// accepts the token, which is when cluster-info has a signature for it. After an error no token
// remains, unless the error says so.
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
	if errors.As(err, &refused) { // the server refused the request, so there is no token
		return Token{}, c.mintFailed(o.Node, err)
	}
	if err != nil { // the token may exist, if only the answer was lost
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

// takeBack deletes a token that cannot be used, even if ctx has ended. It returns its last argument, the
// error that is the reason. If the deletion fails, the returned error contains that failure too.
func (c *Cluster) takeBack(ctx context.Context, t Token, because error) error {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	if err := c.DeleteToken(lasting, t); err != nil {
		return fmt.Errorf("%w (its token expires at %s, and is not deleted: %w)", because,
			t.Expires.Format(time.RFC3339), err)
	}
	return because
}

// afterCancel bounds the clean-up after cancelled work.
const afterCancel = 3 * time.Second

// now returns the API server's time, which decides when tokens expire. If the server does not
// report its time, or if the clocks agree, now returns this machine's time.
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

// tokenSecret returns the token's Secret, in the format that the API server's bootstrap
// signer, token cleaner and authenticator read.
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

// awaitSignature waits until the controller manager has signed cluster-info with the
// token; without this signature, a kubeadm that joins with the token rejects cluster-info.
func (c *Cluster) awaitSignature(ctx context.Context, t Token) error {
	const signedIn = 30 * time.Second
	err := wait.Condition{
		Name:     fmt.Sprintf("cluster-info to be signed with bootstrap token %s", t.id),
		Interval: c.poll / 2,
		Limit:    signedIn,
		Look: func(ctx context.Context) error {
			info, err := c.clusterInfo(ctx)
			switch {
			case err != nil:
				return wait.StopIf(ctx.Err() == nil, err)
			case !info.Exists:
				return wait.Stop(&NoClusterInfoError{})
			case !info.signedFor(t.id):
				return errUnsigned
			}
			return nil
		},
	}.Wait(ctx)
	if late := (*wait.Error)(nil); errors.As(err, &late) && ctx.Err() == nil {
		return &UnsignedError{TokenID: t.id, After: signedIn}
	}
	return err
}

var errUnsigned = errors.New("cluster-info has no signature of the token yet")

// UnsignedError reports that the cluster has not signed cluster-info with a new token.
type UnsignedError struct {
	TokenID string
	After   time.Duration
}

func (e *UnsignedError) Error() string {
	return fmt.Sprintf("await that cluster-info is signed with bootstrap token %s: not within %s; "+
		"does the controller manager run, with bootstrapsigner among its --controllers?", e.TokenID, e.After)
}

// NoClusterInfoError reports that the cluster does not support joining by token.
type NoClusterInfoError struct{}

func (*NoClusterInfoError) Error() string {
	return "read ConfigMap kube-public/cluster-info: it does not exist; " +
		"on a control plane that kubeadm made, run `kubeadm init phase bootstrap-token`"
}

// DeleteToken removes the token's Secret. If there is no such Secret, that is not an
// error.
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
		// Check the selectors' conditions again: not every server supports every selector,
		// and a wrongly deleted token could lock another user's node out of the cluster.
		ours := s.Labels[tokenOwnerLabel] == tokenOwner && s.Type == bootstrap.SecretTypeBootstrapToken
		if !ours || s.Annotations[tokenNodeAnnotation] != node {
			continue
		}
		if err := c.deleteToken(ctx,
			s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}); err != nil {
			return swept, err
		}
		swept = append(swept, strings.TrimPrefix(s.Name, bootstrap.BootstrapTokenSecretPrefix))
	}
	return swept, nil
}
