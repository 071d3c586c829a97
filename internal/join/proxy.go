package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Containerd and kubelet get the proxy as variables of their own, in the value Environment of their keys in the registry:
// the SCM merges it into a service's environment at each start (README of nssm 2.25, "Merged service environment",
// git.iain.cx/nssm.git 61e71854). The machine's variables reach a service only after the next boot.

const (
	httpProxy  = "HTTP_PROXY"
	httpsProxy = "HTTPS_PROXY"
	noProxy    = "NO_PROXY"
)

// servicesKey has a key for each service.
const servicesKey = `HKLM\SYSTEM\CurrentControlSet\Services\`

const environmentValue = "Environment"

// variableRecord is a variable of a service's own environment that the join has set. Before is the value that it had; "":
// the service had no such variable.
type variableRecord struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
}

// proxy returns the proxy of the node's services: the one of the node file or, without one, the one of the machine's
// variables in the node file.
func (j *joining) proxy() v1alpha1.Proxy {
	if j.spec.Proxy != nil {
		return *j.spec.Proxy
	}
	var proxy v1alpha1.Proxy
	for name, value := range j.doc.Node.Spec.Setup.Environment {
		switch strings.ToUpper(name) {
		case httpProxy:
			proxy.HTTP = value
		case httpsProxy:
			proxy.HTTPS = value
		case noProxy:
			proxy.NoProxy = strings.Split(value, ",")
		}
	}
	return proxy
}

// proxyVariables returns the variables of the proxy by name; none without a proxy. NO_PROXY has the cluster's own names
// and addresses too.
func (j *joining) proxyVariables(ctx context.Context, n *node.Node) (map[string]string, error) {
	proxy := j.proxy()
	if proxy.HTTP == "" && proxy.HTTPS == "" {
		return nil, nil
	}
	ranges, err := j.clusterRanges(ctx, n)
	if err != nil {
		return nil, err
	}
	direct := slices.Concat(proxy.NoProxy, []string{"localhost", "127.0.0.1", ".svc", ".cluster.local"}, ranges)
	if host, _, err := net.SplitHostPort(j.endpoint()); err == nil {
		direct = append(direct, host)
	}
	if alias := j.spec.Join.ControlPlaneAlias; alias != nil {
		direct = append(direct, alias.Name, alias.IP)
	}
	variables := map[string]string{noProxy: strings.Join(withoutTwins(direct), ",")}
	if proxy.HTTP != "" {
		variables[httpProxy] = proxy.HTTP
	}
	if proxy.HTTPS != "" {
		variables[httpsProxy] = proxy.HTTPS
	}
	return variables, nil
}

// withoutTwins returns the entries of NO_PROXY in their order, each once.
func withoutTwins(entries []string) (all []string) {
	for _, entry := range entries {
		if entry = strings.TrimSpace(entry); entry != "" && !containsFold(all, entry) {
			all = append(all, entry)
		}
	}
	return all
}

// clusterRanges returns the address ranges of Services and pods. Without access to the cluster it returns those of an
// earlier run.
func (j *joining) clusterRanges(ctx context.Context, n *node.Node) ([]string, error) {
	if j.ranges != nil {
		return j.ranges, nil
	}
	if j.options.Cluster == nil {
		r, err := load(ctx, n)
		return r.Ranges, err
	}
	ranges, err := cni.Ranges(ctx, j.options.Cluster)
	if err != nil {
		return nil, fmt.Errorf("find the cluster's addresses, which the proxy is not for: %w", err)
	}
	j.ranges = ranges
	return ranges, nil
}

// environment is a service's own environment: each variable as NAME=value.
type environment []string

// environmentOf reads a service's own environment.
func environmentOf(ctx context.Context, n *node.Node, service string) (environment, error) {
	value, err := n.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: servicesKey + service, Name: environmentValue})
	switch {
	case errors.Is(err, fault.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the variables of the service %s: %w", service, err)
	}
	return value.GetStrings(), nil
}

// writeTo replaces a service's own environment. The service has it after its next start.
func (e environment) writeTo(ctx context.Context, n *node.Node, service string) error {
	var err error
	if len(e) == 0 {
		_, err = n.Registry.Delete(ctx, &agentv1.RegistryDeleteRequest{Key: servicesKey + service, Name: environmentValue})
		if errors.Is(err, fault.ErrNotExist) {
			err = nil
		}
	} else {
		_, err = n.Registry.Set(ctx, &agentv1.RegistrySetRequest{Key: servicesKey + service, Value: &agentv1.RegistryValue{
			Name: environmentValue, Type: string(platform.RegistryMultiString), Strings: e}})
	}
	if err != nil {
		return fmt.Errorf("set the variables of the service %s: %w", service, err)
	}
	return nil
}

// value returns the value of a variable; "" if the service does not have it. Names ignore case.
func (e environment) value(name string) string {
	for _, pair := range e {
		if is, value, _ := strings.Cut(pair, "="); strings.EqualFold(is, name) {
			return value
		}
	}
	return ""
}

// with returns the environment with a variable. Without a value, it returns the environment without the variable.
func (e environment) with(name, value string) environment {
	i := slices.IndexFunc(e, func(pair string) bool {
		is, _, _ := strings.Cut(pair, "=")
		return strings.EqualFold(is, name)
	})
	switch {
	case i < 0 && value == "":
		return e
	case i < 0:
		return append(slices.Clone(e), name+"="+value)
	case value == "":
		return slices.Delete(slices.Clone(e), i, i+1)
	}
	changed := slices.Clone(e)
	spelled, _, _ := strings.Cut(e[i], "=")
	changed[i] = spelled + "=" + value
	return changed
}

// environmentChange is a change of a service's own environment.
type environmentChange struct {
	after environment
	// set and removed are the names of the variables that change, sorted.
	set, removed []string
	// ours records the variables that are the join's after the change.
	ours []variableRecord
}

func (c environmentChange) needed() bool { return len(c.set)+len(c.removed) > 0 }

// summary describes the change without values, which may have passwords; "" if there is none.
func (c environmentChange) summary(service string) string {
	var parts []string
	if len(c.set) > 0 {
		parts = append(parts, "set "+strings.Join(c.set, ", "))
	}
	if len(c.removed) > 0 {
		parts = append(parts, "remove "+strings.Join(c.removed, ", "))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + " of the service " + service
}

// environmentChange compares a service's own environment with the wanted variables. Those that an earlier run has set and
// that are no longer wanted get the values that they had before.
func (j *joining) environmentChange(ctx context.Context, n *node.Node, r record, service string) (
	c environmentChange, err error) {
	wanted, err := j.proxyVariables(ctx, n)
	if err != nil {
		return c, err
	}
	ours := r.service(service).variables()
	if len(wanted)+len(ours) == 0 { // one question less of each run without a proxy
		return c, nil
	}
	is, err := environmentOf(ctx, n, service)
	if err != nil {
		return c, err
	}
	return is.change(wanted, ours), nil
}

func (e environment) change(wanted map[string]string, ours []variableRecord) environmentChange {
	c := environmentChange{after: e}
	for _, variable := range ours {
		if _, stays := wanted[variable.Name]; stays {
			c.ours = append(c.ours, variable)
			continue
		}
		c.removed = append(c.removed, variable.Name)
		c.after = c.after.with(variable.Name, variable.Before)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.ContainsFunc(ours, func(v variableRecord) bool { return v.Name == name }) {
			c.ours = append(c.ours, variableRecord{Name: name, Before: e.value(name)})
		}
		if e.value(name) != wanted[name] {
			c.set = append(c.set, name)
			c.after = c.after.with(name, wanted[name])
		}
	}
	return c
}

// variables returns the variables that the join has set; none for a nil service.
func (s *serviceRecord) variables() []variableRecord {
	if s == nil {
		return nil
	}
	return s.Variables
}

// restoreEnvironment gives the variables that the join has set the values that they had before.
func restoreEnvironment(ctx context.Context, n *node.Node, s *serviceRecord) error {
	if len(s.variables()) == 0 {
		return nil
	}
	is, err := environmentOf(ctx, n, s.Name)
	if err != nil {
		return err
	}
	return is.change(nil, s.variables()).after.writeTo(ctx, n, s.Name)
}

// summaryWith adds a part to a summary that may be empty.
func summaryWith(summary, part string) string {
	if summary == "" || part == "" {
		return cmp.Or(summary, part)
	}
	return summary + "; " + part
}
