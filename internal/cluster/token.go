package cluster

import (
	"context"
	"errors"
	"time"
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

// MintToken makes a short-lived bootstrap token for one node, and returns when
// the cluster accepts it: cluster-info is signed with it.
func (c *Cluster) MintToken(ctx context.Context, o TokenOptions) (Token, error) {
	return Token{}, errors.ErrUnsupported
}

// DeleteToken removes the token's Secret; one that is gone already is no error.
func (c *Cluster) DeleteToken(ctx context.Context, t Token) error { return errors.ErrUnsupported }

// SweepTokens deletes the tokens that an interrupted swdt left for this node,
// and returns their ids.
func (c *Cluster) SweepTokens(ctx context.Context, node string) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// ID names the token. It is no secret.
func (t Token) ID() string { return t.id }

// Value is the token as kubeadm takes it, id.secret.
func (t Token) Value() string { return t.id + "." + t.secret }
