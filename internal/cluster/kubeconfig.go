package cluster

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ContextName returns the name of the context that the options select, by kubectl's rules. The error
// is a *ConfigError.
func ContextName(o Options) (string, error) {
	config, err := selected(o)
	if err != nil {
		return "", err
	}
	return config.CurrentContext, nil
}

// Kubeconfig returns a kubeconfig that has only the context that the options select. It is the output
// of `kubectl config view --minify --flatten --raw`: it contains the certificates and keys themselves,
// but only references to an exec plugin or to the file of a token. Kubeconfig contacts nothing and
// runs no exec plugin. The error is a *ConfigError.
func Kubeconfig(o Options) ([]byte, error) {
	config, err := selected(o)
	if err != nil {
		return nil, err
	}
	for _, change := range []func(*clientcmdapi.Config) error{clientcmdapi.MinifyConfig, clientcmdapi.FlattenConfig} {
		if err := change(config); err != nil {
			return nil, &ConfigError{Files: files(rulesFor(o)), Context: o.Context, Err: err}
		}
	}
	return clientcmd.Write(*config)
}

// selected returns the merged kubeconfigs, with the selected context as their current one.
func selected(o Options) (*clientcmdapi.Config, error) {
	if _, err := load(o); err != nil { // load checks that the context selects an API server
		return nil, err
	}
	rules := rulesFor(o)
	config, err := rules.Load()
	if err != nil {
		return nil, &ConfigError{Files: files(rules), Context: o.Context, Err: err}
	}
	if o.Context != "" {
		config.CurrentContext = o.Context
	}
	return config, nil
}

// rulesFor returns kubectl's rules for the files of the options.
func rulesFor(o Options) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	rules.WarnIfAllMissing = false
	return rules
}
