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

// Kubeconfig returns a kubeconfig with the context alone that the options select, as `kubectl config
// view --minify --flatten --raw` prints it: certificates and keys are in it, while an exec plugin and
// the file of a token stay references. It contacts nothing and runs no exec plugin. The error is a
// *ConfigError.
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
	if _, err := load(o); err != nil { // it checks that the context selects an API server
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
