package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// kubeletFlags returns the flags after kubelet.exe on a command line. It skips the flags of a
// log runner before kubelet.exe.
func kubeletFlags(line string) map[string]string {
	words := commandline.Split(line)
	begin := slices.IndexFunc(words, func(word string) bool {
		name := folded(word[strings.LastIndexAny(word, `\/`)+1:])
		return name == "kubelet.exe" || name == "kubelet"
	})
	flags, _ := kubeletargs.Flags(words[min(max(begin, 0)+1, len(words)):])
	return flags
}

// onDrive returns a path as kubelet and containerd resolve it.
func onDrive(path string) string { return commandline.OnDrive(path) }

// flag returns the value of a flag of kubelet, or "" if the flag is not set or the
// flags are unknown.
func (f *Facts) flag(name string) string {
	if f.KubeletFlags.Value == nil {
		return ""
	}
	return (*f.KubeletFlags.Value)[name]
}

// programs gathers the programs that the services kubelet, containerd and kube-proxy run. It also
// gathers which of these programs ordinary accounts can change, and the transactions on the node.
func (g *gatherer) programs(ctx context.Context) error {
	request := &agentv1.InspectRequest{}
	var running []preflight.Program
	for _, name := range []string{"kubelet", "containerd", "kube-proxy"} {
		path := programOf(g.facts.service(name), name+".exe")
		if path != "" {
			running = append(running, preflight.Program{Name: name, Path: path})
			request.Components = append(request.Components, &agentv1.InspectComponent{
				Name: name, Destination: path, Service: name, AskVersion: true,
			})
		}
	}
	g.facts.Changeable = factOf(g.look.Changeable(ctx, running...))
	for _, p := range g.Provisioners {
		request.Components = append(request.Components, &agentv1.InspectComponent{
			Name: p.Name, Destination: p.Destination, Service: p.RunBy(),
		})
	}
	reply, err := g.Node.Swap.Inspect(ctx, request)
	programs, swaps := map[string]Program{}, []Swap{}
	g.facts.Placements = factOf(g.placements(reply.GetComponents()[min(len(running), len(reply.GetComponents())):]), err)
	for i, c := range reply.GetComponents()[:min(len(running), len(reply.GetComponents()))] {
		programs[c.GetName()] = Program{
			Path: request.GetComponents()[i].GetDestination(), Exists: c.GetExists(),
			Version: c.GetVersion(), SHA256: c.GetSha256(),
			Leftovers: c.GetLeftovers(),
			Outdated:  c.GetOutdated(),
		}
	}
	for _, t := range reply.GetTransactions() {
		swaps = append(swaps, Swap{
			ID: t.GetId(), Holder: t.GetHolder(), Begun: t.GetBegun().AsTime(), State: word.Of(t.GetState()),
			Guarded: t.GetGuarded(),
			Result:  word.Of(t.GetOutcome().GetResult()), Message: t.GetOutcome().GetMessage(),
		})
	}
	g.facts.Programs, g.facts.Swaps = factOf(programs, err), factOf(swaps, err)
	return err
}

// placements returns the provisioners whose service exists. The parameter `states` has the state of
// each provisioner, or nothing.
func (g *gatherer) placements(states []*agentv1.ComponentState) []Placement {
	all := []Placement{}
	for i, c := range states[:min(len(states), len(g.Provisioners))] {
		p := Placement{Name: c.GetName(), Service: g.Provisioners[i].RunBy(), Destination: g.Provisioners[i].Destination}
		if runs := cmp.Or(c.GetRunning(), c.GetStarts()); !runs.GetDestination() && !c.GetOutdated() {
			p.Runs = runs.GetPath()
		}
		if c.GetService() != nil {
			all = append(all, p)
		}
	}
	return all
}

// programOf returns the path of the program called name on a service's command line, or "" if
// the command line does not have this program. The command line may begin with a log runner.
func programOf(s preflight.Service, name string) string {
	for _, word := range commandline.Split(s.Line()) {
		word = onDrive(strings.Trim(word, `"`))
		if strings.HasSuffix(folded(word), `\`+name) {
			return word
		}
	}
	// The command line may have a path with spaces but without quotes.
	line := onDrive(s.Line())
	if at := strings.Index(folded(line), `\`+name); at >= 0 && !strings.HasPrefix(line, `"`) {
		return line[:at+1+len(name)]
	}
	return ""
}

// kubelet gathers kubelet's configuration, then its health, since the configuration
// has the port of the health check.
func (g *gatherer) kubelet(ctx context.Context) error {
	return errors.Join(g.kubeletConfig(ctx), g.health(ctx), g.kubeadmFlags(ctx))
}

func (g *gatherer) kubeadmFlags(ctx context.Context) error {
	found := KubeadmFlags{Path: kubeletargs.FlagsFile}
	content, err := g.file(ctx, found.Path)
	if err == nil {
		var problem error
		if found.Flags, problem = kubeletargs.ParseKubeadmFlags(content); problem != nil {
			found.Problem = problem.Error()
		}
	}
	g.facts.KubeadmFlags = factOf(found, err)
	return err
}

// kubeletConfig reads the file of --config, then the drop-in files of --config-dir, whose
// settings override the settings of the file.
func (g *gatherer) kubeletConfig(ctx context.Context) error {
	path := onDrive(g.facts.flag("config"))
	if path == "" {
		g.facts.Kubelet = Fact[KubeletConfig]{Unknown: cmp.Or(g.facts.KubeletFlags.Unknown,
			"kubelet is started without --config")}
		return nil
	}
	config := KubeletConfig{Path: path}
	files := []string{path}
	if folder := onDrive(g.facts.flag("config-dir")); folder != "" {
		list, err := g.Node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
		if err != nil {
			g.facts.Kubelet = factOf(config, fmt.Errorf("list %s: %w", folder, err))
			return err
		}
		for _, entry := range list.GetEntries() {
			if strings.HasSuffix(folded(entry.GetPath()), ".conf") {
				files = append(files, entry.GetPath())
			}
		}
		slices.Sort(files[1:])
	}
	var problems []string
	for i, file := range files {
		content, err := smallfile.Read(ctx, g.Node, file)
		if err != nil {
			g.facts.Kubelet = factOf(config, err)
			return err
		}
		form := kubeletconfig.DropIn
		if i == 0 {
			form = kubeletconfig.File
		}
		for _, m := range kubeletconfig.Check(content, form) {
			if m.Ends {
				why := windowstext.ExplainYAML(content, "kubelet", errors.New(m.String()))
				problems = append(problems, file+": "+why.Error())
			} else {
				config.Ignored = append(config.Ignored, IgnoredField{file + ": " + m.Place(), m.Remedy})
			}
		}
		config.read(content, form)
	}
	config.Problem = strings.Join(problems, "; ")
	g.facts.Kubelet = Known(config)
	return nil
}

// read sets the fields of c from the content of a file, as kubelet does: the names of fields differ
// by their case in the file of --config, but not in a drop-in. It keeps the fields that the content
// does not set. Check has found what cannot be read.
func (c *KubeletConfig) read(content []byte, form kubeletconfig.Form) {
	own := *c // a file must not set these fields
	if text, err := yaml.YAMLToJSON(content); err == nil && form == kubeletconfig.File {
		_ = kjson.UnmarshalCaseSensitivePreserveInts(text, c)
	} else if err == nil {
		_ = json.Unmarshal(text, c)
	}
	c.Path, c.Problem, c.Ignored = own.Path, own.Problem, own.Ignored
}

const defaultHealthz = 10248

// healthzPort returns the port of kubelet's health check; 0 if the health check is disabled.
func (f *Facts) healthzPort() int {
	if port, err := strconv.Atoi(f.flag("healthz-port")); err == nil {
		return port
	}
	if f.Kubelet.Value != nil && f.Kubelet.Value.HealthzPort != nil {
		return *f.Kubelet.Value.HealthzPort
	}
	return defaultHealthz
}

// health calls kubelet's health check.
func (g *gatherer) health(ctx context.Context) error {
	port := g.facts.healthzPort()
	health := Health{URL: fmt.Sprintf("http://127.0.0.1:%d/healthz", port)}
	switch {
	case !g.facts.service("kubelet").Running():
		g.facts.Health = Fact[Health]{Unknown: "the service kubelet does not run"}
		return nil
	case port == 0:
		g.facts.Health = Fact[Health]{Unknown: "kubelet's health check is disabled (healthzPort is 0)"}
		return nil
	case ctx.Err() != nil:
		g.facts.Health = Fact[Health]{Unknown: ctx.Err().Error()}
		return ctx.Err()
	}
	reply, err := g.Node.Network.HTTPGet(ctx, &agentv1.HTTPGetRequest{Url: health.URL})
	health.Status = int(reply.GetStatus())
	if health.Status != http.StatusOK {
		health.Body = string(reply.GetBody())
	}
	if err != nil {
		health.Error = err.Error()
	}
	g.facts.Health = Known(health)
	return err
}

// faults returns the ids of events that report faults, by the provider that logs them.
func faults() map[string][]int {
	return map[string][]int{
		"Service Control Manager":        {7000, 7001, 7009, 7022, 7023, 7024, 7031, 7034},
		"EventLog":                       {6008},   // an unexpected shutdown
		"Microsoft-Windows-Kernel-Power": {41},     // an unexpected shutdown, reported by the kernel
		"disk":                           {7, 51},  // 7: a bad block; 51: an error while paging
		"Ntfs":                           {55},     // a damaged file system
		"Microsoft-Windows-Ntfs":         {55, 98}, // a damaged file system (newer builds)
		"Microsoft-Windows-Resource-Exhaustion-Detector": {2004}, // out of virtual memory
	}
}

// maxEvents is the maximum number of events that are read.
const maxEvents = 500

func (g *gatherer) events(ctx context.Context) error {
	all, err := g.readEvents(ctx)
	g.facts.Events = factOf(all, err)
	return err
}

func (g *gatherer) readEvents(ctx context.Context) ([]Event, error) {
	reader, err := events.Open(ctx, g.Node.Processes)
	if err != nil {
		return nil, err
	}
	channels, err := reader.Channels([]string{"System"})
	if err != nil {
		return nil, err
	}
	query := events.Query{Since: time.Now().Add(-eventsBack), Last: maxEvents}
	known := faults()
	for _, ids := range known {
		query.IDs = append(query.IDs, ids...)
	}
	slices.Sort(query.IDs)
	query.IDs = slices.Compact(query.IDs)
	// Ntfs logs event 98 for healthy volumes too, but at a lower level.
	query.Level = logline.Warning
	all := []Event{}
	for _, channel := range channels {
		err := channel.Read(ctx, query, func(batch []events.Event, _ bool) error {
			for _, e := range batch {
				if slices.Contains(known[e.Provider], e.ID) {
					all = append(all, eventOf(e))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// eventOf converts an event. In events of the Service Control Manager, the first value is the
// name of the service.
func eventOf(e events.Event) Event {
	event := Event{Time: e.Time, Provider: e.Provider, ID: e.ID, Message: e.Message}
	if e.Provider == "Service Control Manager" && len(e.Data) > 0 {
		event.Subject = e.Data[0].Value
	}
	return event
}

// logFolders returns the folders with the logs of a node's programs. If the program that writes such
// a log does not rotate the log, no other program does. The folders with the logs of containers are
// left out, since kubelet rotates those logs.
func logFolders() []string {
	return []string{`C:\var\log\kubelet`, `C:\var\log\containerd`, `C:\var\log\kube-proxy`, `C:\var\log\calico`,
		`C:\k\antrea\logs`}
}

func (g *gatherer) logs(ctx context.Context) error {
	files := []LogFile{}
	folders, named := logFolders(), []string{}
	for _, service := range []string{"kubelet", "containerd", "kube-proxy"} {
		s := g.facts.service(service) // the log file is the program's or its log runner's
		file := onDrive(cmp.Or(commandline.Flag(s.CommandLine, "log-file"), commandline.Flag(s.Line(), "log-file")))
		if strings.Contains(file, `\`) {
			folders, named = append(folders, folderOf(file)), append(named, strings.ToLower(file))
		}
	}
	slices.Sort(folders)
	for _, folder := range slices.CompactFunc(folders, strings.EqualFold) {
		list, err := g.Node.Files.List(ctx, &agentv1.ListFilesRequest{Path: folder})
		if errors.Is(err, fault.ErrNotExist) {
			continue
		}
		if err != nil {
			g.facts.Logs = factOf(files, err)
			return err
		}
		for _, entry := range list.GetEntries() {
			// The root of a drive contains files that are not logs.
			isLog := !isRoot(folder) || slices.Contains(named, strings.ToLower(entry.GetPath()))
			if !entry.GetFolder() && isLog {
				files = append(files, LogFile{Path: entry.GetPath(), Bytes: entry.GetSize()})
			}
		}
	}
	g.facts.Logs = Known(files)
	return nil
}

// folderOf returns the folder of a file with a full path, such as C:\ for C:\x.log.
func folderOf(file string) string {
	folder := file[:strings.LastIndex(file, `\`)]
	if isRoot(folder + `\`) {
		return folder + `\`
	}
	return folder
}

// isRoot reports whether a folder is the root of a drive, such as C:\.
func isRoot(folder string) bool { return len(folder) == len(`C:\`) }

// endpoint returns the endpoint of kubelet's runtime, from kubelet's flag, else from kubelet's
// configuration, or "" if neither sets the endpoint.
func (f *Facts) endpoint() string {
	if flag := f.flag("container-runtime-endpoint"); flag != "" {
		return flag
	}
	if f.Kubelet.Value != nil && f.Kubelet.Value.ContainerRuntimeEndpoint != nil {
		return *f.Kubelet.Value.ContainerRuntimeEndpoint
	}
	return ""
}

// sameEndpoint reports whether two endpoints name the same pipe, in either of the forms
// npipe:////./pipe/name and \\.\pipe\name.
func sameEndpoint(a, b string) bool {
	clean := func(s string) string {
		s = strings.TrimPrefix(folded(s), "npipe://")
		return strings.Trim(strings.ReplaceAll(s, `\`, "/"), "/")
	}
	return clean(a) == clean(b)
}

// The default paths of the files of a joined node, and of the runtime's pipe.
const (
	kubeletConf   = `C:\etc\kubernetes\kubelet.conf`
	bootstrapConf = `C:\etc\kubernetes\bootstrap-kubelet.conf`
	certFolder    = `C:\var\lib\kubelet\pki`
	clusterCA     = `C:\etc\kubernetes\pki\ca.crt`
	runtimePipe   = kubeletargs.RuntimeEndpoint
)
