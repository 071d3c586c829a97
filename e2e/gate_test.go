//go:build e2e && linux

package e2e

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// moment is when a gate strikes.
type moment string

const (
	// whenDone is after the API server has made the change, and before the client knows.
	whenDone moment = "when it is done"
	// whenAsked is before the API server gets the request. It never gets that of a client that was killed, and
	// gets any other once the client has given up, or still waits after patience.
	whenAsked moment = "when it is asked for"

	patience = 2 * time.Second
)

// gate is a proxy of an API server that counts the changes that clients make, and can strike at one of them.
type gate struct {
	kubeconfig string
	proxy      *httputil.ReverseProxy

	mu      sync.Mutex
	changes []string
	at      int // 0: no strike
	moment  moment
	strike  func(change string)
}

// newGate returns a gate to the API server of a kubeconfig, until the test ends. The gate's own kubeconfig has the
// same user, although the gate itself authenticates.
func newGate(t *testing.T, kubeconfig string) *gate {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{kubeconfig: filepath.Join(t.TempDir(), "gate.conf")}
	g.proxy = httputil.NewSingleHostReverseProxy(to)
	g.proxy.Transport = &http.Transport{TLSClientConfig: secured} // HTTP/1.1, which commands in pods need
	g.proxy.FlushInterval = -1
	g.proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that are killed
	g.proxy.ModifyResponse = func(r *http.Response) error {
		if strike, ok := r.Request.Context().Value(strikeKey{}).(func()); ok {
			strike()
		}
		return nil
	}
	server := httptest.NewUnstartedServer(g)
	server.Config.ErrorLog = g.proxy.ErrorLog
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	g.write(t, kubeconfig, server)
	return g
}

// write writes the gate's kubeconfig.
func (g *gate) write(t *testing.T, of string, server *httptest.Server) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(of)
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		c.Server = server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	if err := clientcmd.WriteToFile(*config, g.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// strikeAt begins a new count, and calls strike at the change with this number, from 1; 0 is none.
func (g *gate) strikeAt(number int, m moment, strike func(change string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changes, g.at, g.moment, g.strike = nil, number, m, strike
}

// seen returns the changes since the last call of strikeAt.
func (g *gate) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.changes)
}

type strikeKey struct{}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	change := changeOf(r)
	if change == "" {
		g.proxy.ServeHTTP(w, r)
		return
	}
	g.mu.Lock()
	g.changes = append(g.changes, change)
	strikes, m, strike := len(g.changes) == g.at, g.moment, g.strike
	g.mu.Unlock()
	// The API server makes the change even if the client goes.
	ctx := context.WithoutCancel(r.Context())
	switch {
	case !strikes:
	case m == whenDone:
		ctx = context.WithValue(ctx, strikeKey{}, func() { strike(change) })
	default:
		body, err := io.ReadAll(r.Body) // lets the server notice that the client has gone
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			strike(change)
		}()
		<-killed
		limit := time.NewTimer(patience)
		defer limit.Stop()
		select {
		case <-r.Context().Done():
		case <-limit.C:
		}
	}
	g.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// changeOf returns the verb and the path of a request that changes the cluster; "" for any other.
func changeOf(r *http.Request) string {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if reads || strings.HasSuffix(r.URL.Path, "/exec") || strings.Contains(r.URL.Path, "authorization.k8s.io") {
		return ""
	}
	return r.Method + " " + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/apis/")
}
