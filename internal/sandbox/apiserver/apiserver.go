// Package apiserver is a Kubernetes control plane held in memory: an API server
// over HTTPS on loopback with its own CA, and the few controllers that a joining
// node needs. Its clients are client-go, kubectl, and the kubeadm and kubelet of a
// simulated machine.
//
// The API server is generic. It stores an object as plain JSON, by resource, namespace and name;
// get, list, create, update, patch, delete and watch work for the resources of the table in
// resources.go (virtual ones support only create) and for the resources that a test adds. Only
// strategic merge patches and requests in protobuf need Kubernetes' own type of an object. Some
// resources have a behaviour of their own:
//
//   - bootstrap-token Secrets expire and sign cluster-info (bootstrap.go)
//   - certificate signing requests of nodes are approved and signed (csr.go)
//   - nodes are tainted, and their Ready condition becomes Unknown if a node does not renew its
//     lease (nodes.go)
//   - nodes get a pod that installs a pod network (nodes.go)
//   - pods that name a node run if the cluster has kubelets, and answer exec (podhost.go)
//   - evictions respect PodDisruptionBudgets (pods.go)
//   - the output of a pod's containers is an annotation of the pod (pods.go)
//   - deleting an object deletes the objects that it owns (store.go)
//   - Services get a cluster IP, and deleting a namespace deletes its objects (services.go)
//
// There is no scheduler, and no other controller creates pods. Access follows the
// rules that kubeadm sets up (access.go) and the roles that are stored (rbac.go). Lists are never
// paged. Tests can inject faults: see OnRequest, SetVersion, SetClock.
package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// Options are the settings of a cluster. With the zero value, the cluster is a realistic one.
type Options struct {
	Version string // the version of the API server; default: DefaultVersion
	// Address to listen on; default: a free port of 127.0.0.1.
	Address string
	// Listener is where to listen, instead of Address; Close closes it. nil: a listener on Address.
	Listener net.Listener
	// Names are further names and addresses in the server's certificate, such as
	// a control plane's alias.
	Names []string
	// NodeGrace is the time without a renewed lease after which the Ready condition of a node that
	// has a lease becomes Unknown, up to half as long later; default 40 s, as in Kubernetes.
	NodeGrace time.Duration
	// PodGrace is how long a deleted pod that runs on a node remains; default:
	// the pod is removed at once.
	PodGrace time.Duration
	// NoPodNetwork leaves joining nodes without a pod network: they do not become
	// ready.
	NoPodNetwork bool
	// Log receives the cluster's log; nil: nothing is logged.
	Log *slog.Logger
}

// DefaultVersion is the API server's default version.
const DefaultVersion = "v1.36.3"

func (o Options) withDefaults() Options {
	if o.Version == "" {
		o.Version = DefaultVersion
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.NodeGrace == 0 {
		o.NodeGrace = 40 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Cluster is a running control plane. Many machines can join it.
type Cluster struct {
	options  Options
	ca       *authority
	listener *gate
	server   *http.Server
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup // the goroutines and requests that Close waits for

	mu        sync.Mutex
	silent    map[string]bool // nodes whose kubelets do not answer
	closed    bool
	version   string
	clock     time.Duration // how much the server's clock is ahead
	hook      func(Request) Verdict
	kubelets  Kubelets
	requests  []Request
	resources []Resource
	services  int // the number of Services that got a cluster IP
	store     *store
}

// Start starts a control plane. End it with Close.
func Start(o Options) (*Cluster, error) {
	o = o.withDefaults()
	listener := o.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", o.Address); err != nil {
			return nil, fmt.Errorf("listen for the simulated API server: %w", err)
		}
	}
	c := &Cluster{options: o, listener: newGate(listener), version: o.Version, resources: builtinResources()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.prepare(); err != nil {
		c.cancel()
		listener.Close()
		return nil, fmt.Errorf("start the simulated API server: %w", err)
	}
	c.running.Go(func() { _ = c.server.ServeTLS(c.listener, "", "") })
	c.running.Go(func() { c.expireTokens(c.ctx) })
	c.running.Go(func() { c.watchNodes(c.ctx) })
	o.Log.Info("the simulated API server listens", "server", c.Server(), "version", o.Version)
	return c, nil
}

// prepare creates everything except the goroutines.
func (c *Cluster) prepare() error {
	ca, err := newAuthority("kubernetes")
	if err != nil {
		return err
	}
	c.ca = ca
	config, err := ca.serverConfig(append([]string{"127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default"},
		c.options.Names...))
	if err != nil {
		return err
	}
	c.store = newStore(c.now)
	c.server = &http.Server{
		Handler: c, TLSConfig: config, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:    slog.NewLogLogger(c.options.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return c.ctx },
	}
	return c.install()
}

// Close ends the control plane and cuts every connection.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	_ = c.server.Close()
	c.running.Wait()
}

// Server returns the API server's URL.
func (c *Cluster) Server() string { return "https://" + c.Address() }

// Address returns the address on which the API server listens, as host:port.
func (c *Cluster) Address() string { return c.listener.Addr().String() }

// CA returns the certificate of the cluster's authority, as PEM.
func (c *Cluster) CA() []byte { return c.ca.pem }

// CACertHash returns the hash of CA, in the form of kubeadm's --discovery-token-ca-cert-hash.
func (c *Cluster) CACertHash() string { return c.ca.hash() }

// Kubeconfig returns the administrator's kubeconfig. server is the URL that the kubeconfig
// contains; if it is "", Kubeconfig uses the URL of Server.
func (c *Cluster) Kubeconfig(server string) ([]byte, error) {
	if server == "" {
		server = c.Server()
	}
	return c.kubeconfigOf(server, "kubernetes-admin", groupMasters)
}

// KubeconfigOf returns the kubeconfig of a user with the rights of the roles that are bound to the user.
func (c *Cluster) KubeconfigOf(user string) ([]byte, error) { return c.kubeconfigOf(c.Server(), user) }

func (c *Cluster) kubeconfigOf(server, user string, groups ...string) ([]byte, error) {
	certificate, key, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", user, err)
	}
	return kubeconfig(server, c.ca.pem, certificate, key)
}

// WriteKubeconfig writes the administrator's kubeconfig to path. Only the owner can read a new file;
// a file that exists keeps its permissions.
func (c *Cluster) WriteKubeconfig(path string) error {
	data, err := c.Kubeconfig("")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if err := localfile.Replace(path, data); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// now returns the API server's time.
func (c *Cluster) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.clock)
}

// begin counts a request or a goroutine that Close waits for. It returns false after Close, and
// the caller must then do nothing.
func (c *Cluster) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.running.Add(1)
	return true
}
