package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // registers the auth-provider oidc of kubeconfigs
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// Options select the cluster, by kubectl's rules.
type Options struct {
	// Kubeconfig is a path. Default: the files of KUBECONFIG, merged, else
	// ~/.kube/config.
	Kubeconfig string
	// Context is the name of a context of the kubeconfig. Default: the current one.
	Context string
	// Timeout bounds each request. Default 15 s.
	Timeout time.Duration
	// NoStdin keeps swdt's stdin from the exec plugins of the kubeconfig, so that they ask the user nothing there.
	NoStdin bool
	// Unlimited leaves it to the caller to bound the requests a second. Default: 50 requests a second, and
	// 100 at once.
	Unlimited bool
	// Dialer connects to the API server, as a *net.Dialer does; nil: through the system's network.
	Dialer Dialer
	// Poll is the time between two requests of a wait. Default 1 s.
	Poll time.Duration
}

// Dialer opens connections. It is a pointer, so that Options can be compared.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// defaultTimeout bounds each request if the options do not.
const defaultTimeout = 15 * time.Second

// Cluster is an API server with the user's credentials. It need not be closed.
type Cluster struct {
	server  string
	config  *rest.Config // nil if there are only clients, as in tests
	client  kubernetes.Interface
	dynamic dynamic.Interface
	poll    time.Duration // between two requests of a wait
}

// Open reads the kubeconfig. It does not contact the cluster yet.
func Open(o Options) (*Cluster, error) {
	config, err := load(o)
	if err != nil {
		return nil, err
	}
	config.Timeout = o.Timeout
	if o.Dialer != nil {
		config.Dial = o.Dialer.DialContext
	}
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = o.NoStdin
	}
	opened, err := fromConfig(config, o.Unlimited)
	if err == nil && o.Poll > 0 {
		opened.poll = o.Poll
	}
	if wrong, ok := errors.AsType[*ConfigError](err); ok {
		wrong.Files, wrong.Context = files(rulesFor(o)), o.Context
	}
	return opened, err
}

// Parse returns the Cluster that the current context of a kubeconfig selects. The argument is the
// text of the kubeconfig.
func Parse(kubeconfig []byte) (*Cluster, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	parsed, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	if wrong := unusableUser(parsed, ""); wrong != nil {
		return nil, wrong
	}
	config.Timeout = defaultTimeout
	return FromConfig(config)
}

// Contexts lists the contexts of a kubeconfig. If kubeconfig is empty, kubectl's rules
// select the files. If the files cannot be read, the list is empty.
func Contexts(kubeconfig string) []string {
	config, err := rulesFor(Options{Kubeconfig: kubeconfig}).Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// load merges kubeconfigs as kubectl does.
func load(o Options) (*rest.Config, error) {
	rules := rulesFor(o)
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, &ConfigError{Files: files(rules), Context: o.Context, Why: why(rules, o.Context), Err: err}
	}
	merged, err := rules.Load()
	if err != nil {
		return nil, &ConfigError{Files: files(rules), Context: o.Context, Err: err}
	}
	if wrong := unusableUser(merged, o.Context); wrong != nil {
		wrong.Files, wrong.Context = files(rules), o.Context
		return nil, wrong
	}
	return config, nil
}

// why explains a common mistake in the kubeconfigs, or in the name of the context. If it finds none, it returns "".
func why(rules *clientcmd.ClientConfigLoadingRules, context string) string {
	missing, files := 0, files(rules)
	for _, file := range files {
		_, err := clientcmd.LoadFromFile(file)
		var path *fs.PathError
		switch {
		case runtime.IsNotRegisteredError(err), runtime.IsMissingKind(err):
			return file + " is no kubeconfig"
		case errors.Is(err, fs.ErrNotExist):
			missing++
		case errors.As(err, &path):
			return fmt.Sprintf("%s cannot be read: %v", file, path.Err)
		case err != nil:
			return fmt.Sprintf("%s is no kubeconfig: %v", file, explained(file, err))
		}
	}
	switch {
	case missing < len(files):
		return whyNoContext(rules, context)
	case missing == 1:
		return "there is no such file"
	}
	return "there are no such files"
}

// explained returns the reason why a kubeconfig cannot be parsed: its encoding, or err.
func explained(file string, err error) error {
	content, unread := os.ReadFile(file)
	if unread != nil {
		return err
	}
	return windowstext.ExplainYAML(content, "kubectl", err)
}

// whyNoContext explains why kubeconfigs that can be read select no context, if that is so; else it returns "". name
// is that of the context, or "" for the current one.
func whyNoContext(rules *clientcmd.ClientConfigLoadingRules, name string) string {
	config, err := rules.Load()
	if err != nil {
		return ""
	}
	name = cmp.Or(name, config.CurrentContext)
	what := fmt.Sprintf("there is no context %q", name)
	if name == "" {
		what = "there is no current context"
	}
	switch _, found := config.Contexts[name]; {
	case found:
		return ""
	case len(config.Contexts) == 0:
		return "there are no contexts"
	}
	return what + "; the contexts are " + strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
}

func files(rules *clientcmd.ClientConfigLoadingRules) []string {
	if rules.ExplicitPath != "" {
		return []string{rules.ExplicitPath}
	}
	return rules.Precedence
}

// FromConfig returns a Cluster for an existing configuration. It keeps the limits of requests and the handler of
// warnings that the configuration has.
func FromConfig(config *rest.Config) (*Cluster, error) { return fromConfig(config, false) }

func fromConfig(config *rest.Config, unlimited bool) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "swdt"
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 100
	}
	if unlimited {
		config.QPS = -1 // client-go's value for no limit
	}
	if config.WarningHandler == nil {
		config.WarningHandler = rest.NoWarnings{} // by default, client-go writes the server's warnings to stderr
	}
	config.Wrap(evictionsAnswerAtOnce)
	transport, err := httpClient(config)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	custom, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	return &Cluster{server: config.Host, config: config, client: client, dynamic: custom, poll: pollInterval}, nil
}

// FromClients returns a Cluster for existing clients, such as client-go's fakes. The Cluster's
// methods ClockSkew and Exec return errors.ErrUnsupported, since they need a configuration.
func FromClients(server string, client kubernetes.Interface, custom dynamic.Interface) *Cluster {
	return &Cluster{server: server, client: client, dynamic: custom, poll: pollInterval}
}

// Server returns the API server's URL as the kubeconfig has it.
func (c *Cluster) Server() string { return c.server }

// Endpoint returns the API server's host:port.
func (c *Cluster) Endpoint() string { return endpoint(c.server) }

// Clientset returns client-go's client, for requests that this package does not make
// itself.
func (c *Cluster) Clientset() kubernetes.Interface { return c.client }

// Following returns a client of client-go whose requests may last as long as their context, such as a watch
// or the output of a container that still runs. The requests of Clientset end after Options.Timeout.
func (c *Cluster) Following() (kubernetes.Interface, error) {
	if c.config == nil {
		return c.client, nil
	}
	config := rest.CopyConfig(c.config)
	config.Timeout = 0
	transport, err := httpClient(config)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	return client, nil
}

// Dynamic returns client-go's client for objects of any kind.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Version returns the API server's version, such as v1.36.3.
func (c *Cluster) Version(ctx context.Context) (string, error) {
	const doing = "ask the API server for its version"
	v, err := discovery.ToServerVersionInterfaceWithContext(c.client.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return "", c.fail(doing, Permission{Verb: "get", Resource: "/version"}, err)
	}
	return v.GitVersion, nil
}

func endpoint(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" { // the kubeconfig may have just host:port
		return server
	}
	if u.Port() != "" {
		return u.Host
	}
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
