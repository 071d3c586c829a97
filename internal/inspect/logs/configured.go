package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/servicelog"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// service returns a service, or nil if there is none of that name.
func (f *finder) service(ctx context.Context, name string) (*agentv1.ServiceReply, error) {
	reply, err := f.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
	if errors.Is(err, fault.ErrNoService) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings of service %s: %w", name, err)
	}
	return reply, nil
}

// ofService returns a service's logs. These are the files that the service is configured to write,
// even if they do not exist yet, and the existing files among the usual log files of a service.
func (f *finder) ofService(ctx context.Context, source, name string) ([]Found, error) {
	service, err := f.service(ctx, name)
	if err != nil {
		return nil, err
	}
	configured := configured(name, service)
	var all []Found
	for i, path := range append(configured, servicelog.Usual(name)...) {
		if path = absolute(path); path == "" {
			continue
		}
		found, err := f.glob(ctx, source, path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 && i < len(configured) {
			found = []Found{f.found(source, path)}
		}
		all = append(all, found...)
	}
	return all, nil
}

// configured returns the files to which the service is configured to log.
func configured(name string, service *agentv1.ServiceReply) []string {
	if service == nil {
		return nil
	}
	registered, program := service.GetConfig().GetCommandLine(), service.GetProgram()
	paths := servicelog.Configured(name, registered) // of a native service or its log runner
	for _, path := range servicelog.Configured(name, program.GetCommandLine()) {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return append(paths, program.GetLogs()...)
}

// pod returns the logs of namespace/name[/container], including the logs of earlier starts that
// kubelet has kept.
func (f *finder) pod(ctx context.Context, name string) ([]Found, error) {
	folder, err := f.podFolder(ctx)
	if err != nil {
		return nil, err
	}
	found, err := f.glob(ctx, "", podPattern(folder, name))
	for i := range found {
		found[i].Source = podSource(folder, found[i].Path)
	}
	return found, err
}

// podPattern returns the pattern of the logs of namespace/name[/container].
func podPattern(folder, name string) string {
	parts := strings.Split(name, "/")
	container := "*"
	if len(parts) > 2 {
		container = parts[2]
	}
	return folder + `\` + parts[0] + "_" + parts[1] + `_*\` + container + `\*.log`
}

// podSource returns the source of a container's log. The path of such a log is
// C:\var\log\pods\NS_NAME_UID\CONTAINER\0.log, and no name in the path contains an underscore. For
// any other file below the folder, podSource returns file:PATH.
func podSource(folder, path string) string {
	parts := strings.Split(path[len(folder)+1:], `\`)
	pod := strings.Split(parts[0], "_")
	if len(parts) != 3 || len(pod) != 3 {
		return filePrefix + path
	}
	return podPrefix + pod[0] + "/" + pod[1] + "/" + parts[1]
}

// podFolder returns the folder of containers' logs in kubelet's configuration, or kubelet's default
// folder.
func (f *finder) podFolder(ctx context.Context) (string, error) {
	if f.podLogs != "" {
		return f.podLogs, nil
	}
	f.podLogs = defaultPodLogs
	service, err := f.service(ctx, "kubelet")
	if err != nil || service == nil {
		return f.podLogs, err
	}
	file := absolute(commandline.Flag(service.GetProgram().GetCommandLine(), "config"))
	if file == "" {
		return f.podLogs, nil
	}
	content, err := smallfile.Read(ctx, f.node, file)
	if errors.Is(err, fault.ErrNotExist) {
		return f.podLogs, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the kubelet's configuration: %w", err)
	}
	var kubelet struct {
		PodLogsDir string `json:"podLogsDir"`
	}
	// A configuration that cannot be parsed is no error of swdt: kubelet itself reports it.
	if yaml.Unmarshal(content, &kubelet) == nil && absolute(kubelet.PodLogsDir) != "" {
		f.podLogs = absolute(kubelet.PodLogsDir)
	}
	return f.podLogs, nil
}
