package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// CredentialError reports that the kubeconfig's credential plugin gave no credentials, so that the
// API server was not asked.
type CredentialError struct {
	Doing       string
	Plugin      string // the plugin's command, as the kubeconfig names it
	InstallHint string // of the kubeconfig; may be empty
	// Missing reports whether there is no such program on this machine. If there is, it failed, or its
	// output is not a credential.
	Missing bool
	Err     error
}

func (e *CredentialError) Error() string {
	return fmt.Sprintf("%s: %s, so the API server was not asked; %s", e.Doing, e.Fault(), e.Remedy())
}
func (e *CredentialError) Unwrap() error { return e.Err }

// Fault returns the mistake of the plugin, without a remedy.
func (e *CredentialError) Fault() string {
	if e.Missing {
		return fmt.Sprintf("the kubeconfig's credential plugin %s is not installed", e.Plugin)
	}
	return fmt.Sprintf("the kubeconfig's credential plugin %s gave no credentials: %v", e.Plugin, e.Err)
}

// Remedy returns what to do about it.
func (e *CredentialError) Remedy() string {
	switch hint := strings.Join(strings.Fields(e.InstallHint), " "); {
	case e.Missing && hint != "":
		return hint
	case e.Missing:
		return "install it, or correct users[].user.exec.command of the kubeconfig"
	}
	return "log in again with it, and see what it printed"
}

// pluginFailure is an error of client-go's transport before a request was sent. client-go has no type
// for the errors of its credential plugins.
type pluginFailure struct{ err error }

func (f *pluginFailure) Error() string { return f.err.Error() }
func (f *pluginFailure) Unwrap() error { return f.err }

// credentialError converts an error of a request that was never sent; it returns nil for any other
// error.
func (c *Cluster) credentialError(doing string, err error) *CredentialError {
	failure, ok := errors.AsType[*pluginFailure](err)
	if !ok || c.config == nil || c.config.ExecProvider == nil {
		return nil
	}
	plugin := c.config.ExecProvider
	_, missing := exec.LookPath(plugin.Command)
	return &CredentialError{Doing: doing, Plugin: plugin.Command, InstallHint: plugin.InstallHint, Err: failure.err,
		Missing: errors.Is(missing, exec.ErrNotFound) || errors.Is(missing, fs.ErrNotExist)}
}

// httpClient returns the HTTP client of a configuration. If a credential plugin gives no credentials,
// its requests fail with a *pluginFailure.
func httpClient(config *rest.Config) (*http.Client, error) {
	if config.ExecProvider == nil {
		return rest.HTTPClientFor(config)
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return sent{base} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Transport = withCredentials{client.Transport}
	return client, nil
}

// withCredentials surrounds the transport in which client-go runs the plugin, and that one
// surrounds sent.
type withCredentials struct{ base http.RoundTripper }

// wasSent is the key of a request's flag in its context.
type wasSent struct{}

func (t withCredentials) RoundTrip(request *http.Request) (*http.Response, error) {
	var flag atomic.Bool
	response, err := t.base.RoundTrip(request.WithContext(context.WithValue(request.Context(), wasSent{}, &flag)))
	if err != nil && !flag.Load() && request.Context().Err() == nil {
		return nil, &pluginFailure{err}
	}
	return response, err
}

// WrappedRoundTripper returns the surrounded transport, for callers that look for its TLS settings.
func (t withCredentials) WrappedRoundTripper() http.RoundTripper { return t.base }

// sent notes that a request has its credentials and is sent.
type sent struct{ base http.RoundTripper }

func (t sent) RoundTrip(request *http.Request) (*http.Response, error) {
	if flag, ok := request.Context().Value(wasSent{}).(*atomic.Bool); ok {
		flag.Store(true)
	}
	return t.base.RoundTrip(request)
}

// WrappedRoundTripper returns the surrounded transport.
func (t sent) WrappedRoundTripper() http.RoundTripper { return t.base }

// unusableUser returns an error for a user that client-go accepts and that cannot be used: one that the
// kubeconfig does not have, whom the API server would take for system:anonymous, or one with a provider
// of credentials that Kubernetes has removed.
func unusableUser(config *clientcmdapi.Config, context string) *ConfigError {
	if context == "" {
		context = config.CurrentContext
	}
	selected, ok := config.Contexts[context]
	if !ok || selected.AuthInfo == "" {
		return nil
	}
	user, ok := config.AuthInfos[selected.AuthInfo]
	switch {
	case !ok:
		return &ConfigError{Why: fmt.Sprintf("context %q has the user %q, which the kubeconfig does not have", context,
			selected.AuthInfo), Remedy: "add the user, or name another context with --context"}
	case user.AuthProvider == nil || user.AuthProvider.Name == "oidc":
		return nil
	}
	why := fmt.Sprintf("the user %q has the auth provider %q, which Kubernetes does not have", selected.AuthInfo,
		user.AuthProvider.Name)
	if successor, ok := removedProviders()[user.AuthProvider.Name]; ok {
		return &ConfigError{Why: why + " any more", Remedy: "use the credential plugin " + successor}
	}
	return &ConfigError{Why: why, Remedy: "use a credential plugin (users[].user.exec)"}
}

// removedProviders returns the successors of the auth providers that client-go has removed: openstack in
// 1.23, azure and gcp in 1.26.
func removedProviders() map[string]string {
	return map[string]string{
		"gcp": "gke-gcloud-auth-plugin; `gcloud container clusters get-credentials` writes it into the kubeconfig",
		"azure": "kubelogin (https://github.com/Azure/kubelogin); `kubelogin convert-kubeconfig` writes it into the " +
			"kubeconfig",
		"openstack": "client-keystone-auth (https://github.com/kubernetes/cloud-provider-openstack)",
	}
}
