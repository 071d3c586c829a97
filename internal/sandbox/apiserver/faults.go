package apiserver

import (
	"slices"
	"time"
)

// Request is one request to the API server, after its sender is known.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection
	Group       string // empty: core
	Resource    string // such as nodes; empty for a path that is not a resource, such as /version
	Subresource string // status, eviction, …
	Namespace   string
	Name        string
	Path        string // of the URL
	User        string // system:anonymous, kubernetes-admin, system:node:win-1, …
	groups      []string
}

// Verdict decides what happens to a request. The zero Verdict lets the request continue; the fields
// can be combined.
type Verdict struct {
	// Delay delays the request, before the other fields take effect.
	Delay time.Duration
	// Drop cuts the connection without an answer.
	Drop bool
	// Status answers with this HTTP status (403, 500, 503, …) and Message.
	Status  int
	Message string
}

// Forbid returns the verdict of an API server that does not allow the request.
func Forbid() Verdict { return Verdict{Status: 403} }

// OnRequest sets the hook that decides about every request; nil removes it. The hook runs in the
// request's goroutine and may use the cluster.
func (c *Cluster) OnRequest(hook func(Request) Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

// Requests returns the latest requests, at most maxRequests of them, in order.
func (c *Cluster) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// SetVersion makes the API server report this version.
func (c *Cluster) SetVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// SetClock sets how far the API server's clock is ahead of the real clock.
func (c *Cluster) SetClock(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock = ahead
}

// maxRequests bounds the number of recorded requests.
const maxRequests = 10_000

// verdict records a request and returns the hook's verdict.
func (c *Cluster) verdict(r Request) Verdict {
	c.mu.Lock()
	if len(c.requests) >= maxRequests {
		c.requests = slices.Clone(c.requests[maxRequests/2:])
	}
	c.requests = append(c.requests, r)
	hook := c.hook
	c.mu.Unlock()
	if hook == nil {
		return Verdict{}
	}
	return hook(r)
}
