package v1alpha1

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxWait is the longest duration that a service's health check may have.
const maxWait = time.Hour

func validateProvisioners(p *problems, field string, provisioners []Provisioner) {
	names, destinations, services := newSeen(p), newSeen(p), newSeen(p)
	for i, provisioner := range provisioners {
		validateProvisioner(p, at(field, i, ""), provisioner)
		_, twice := names.first[strings.ToLower(provisioner.Name)]
		if service := provisioner.RunBy(); service != "" && provisioner.Service != "" {
			services.add(at(field, i, "service"), service)
		} else if service != "" && !twice { // two of one name are one problem
			services.add(at(field, i, "name"), service)
		}
		if provisioner.Name != "" {
			names.add(at(field, i, "name"), provisioner.Name)
		}
		if clean, err := CleanWindowsPath(provisioner.Destination); err == nil {
			destinations.addAs(at(field, i, "destination"), provisioner.Destination, clean)
		}
	}
	validateOrder(p, field, provisioners)
}

func validateProvisioner(p *problems, field string, pr Provisioner) {
	if p.required(field+".name", pr.Name, "name the Windows service, such as kubelet") {
		validateServiceName(p, field+".name", pr.Name)
	}
	if pr.Service != "" {
		validateServiceName(p, field+".service", pr.Service)
	}
	if pr.Version != "" && !matches(`[A-Za-z0-9][A-Za-z0-9._+-]*`, pr.Version) {
		p.add(field+".version", fmt.Sprintf("%.60q is not a version", pr.Version),
			"write it as the binary reports it, such as 1.29.0")
	}
	validateSource(p, field+".sourceURL", pr.SourceURL)
	if pr.SHA256 != "" && !matches(`[0-9a-f]{64}`, pr.SHA256) {
		p.add(field+".sha256", "is not a SHA-256 hash", "write 64 hexadecimal digits, as sha256sum prints them")
	}
	validateDestination(p, field+".destination", pr.Destination)
	for i, arg := range pr.Args {
		if strings.Contains(arg, "\x00") {
			p.add(at(field+".args", i, ""), "has a null character", "remove it")
		}
	}
	services := newSeen(p)
	for i, service := range pr.DependsOn {
		item := at(field+".dependsOn", i, "")
		if service == "" {
			p.add(item, "is empty", "name a service")
			continue
		}
		validateServiceName(p, item, service)
		services.add(item, service)
	}
	if pr.Health != nil {
		validateHealth(p, field+".health", *pr.Health)
	}
	if pr.Build != nil {
		validateBuild(p, field+".build", pr.SourceURL, *pr.Build)
	}
}

func validateServiceName(p *problems, field, name string) {
	const form = "write the name that `sc.exe query` shows, such as kubelet"
	switch {
	case len(name) > 256:
		p.add(field, "is too long for a service", form)
	case strings.ContainsAny(name, `/\:"`) || hasControl(name) || strings.TrimSpace(name) != name:
		p.add(field, fmt.Sprintf("%.60q cannot be a service's name", name), form)
	}
}

func validateSource(p *problems, field, source string) {
	if !p.required(field, source, "write "+sourceForms) {
		return
	}
	scheme, rest, isURL := strings.Cut(source, "://")
	switch {
	case hasControl(source):
		p.add(field, "has a control character",
			`in double quotes \n, \b, \t and the like are escapes: write it without quotes or in single quotes`)
	case !isURL || strings.HasPrefix(scheme, "$"): // a path, or a URL whose scheme is a variable
	case !slices.Contains([]string{"http", "https", "file", "oci", "oci+http"}, strings.ToLower(scheme)):
		p.add(field, "has a scheme that is not understood", "write "+sourceForms)
	case rest == "" || strings.ToLower(scheme) != "file" && strings.HasPrefix(rest, "/"):
		p.add(field, "is a URL without a host or path", "write it whole")
	case isRegistry(source) && !strings.Contains(rest, "$") && !matches(artifact, rest):
		p.add(field, "names no artifact in a registry", "write oci://REGISTRY/REPOSITORY:TAG or "+
			"oci://REGISTRY/REPOSITORY@sha256:DIGEST")
	}
}

const (
	sourceForms = "a path, file://…, http://…, https://… or oci://…"
	// artifact is the pattern of REGISTRY/REPOSITORY with a tag or digest.
	artifact = `[A-Za-z0-9.\-:\[\]]+(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?`
)

// isRegistry reports whether a sourceURL names a set of binaries in an OCI registry.
func isRegistry(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && strings.HasPrefix(strings.ToLower(scheme), "oci")
}

// hasUserInfo reports whether source is a URL like https://user:password@host/. A user that
// begins with $ does not count, since it is a variable.
func hasUserInfo(source string) bool {
	parsed, err := url.Parse(source)
	if err != nil || parsed.User == nil {
		return false
	}
	return !strings.HasPrefix(parsed.User.String(), "$")
}

func validateDestination(p *problems, field, destination string) {
	if !p.required(field, destination, `write the absolute path of the file on the node, such as C:\k\kubelet.exe`) {
		return
	}
	clean, err := CleanWindowsPath(destination)
	if err != nil {
		p.addPath(field, err)
		return
	}
	switch {
	case endsInSeparator(destination) || len(clean) == len(`C:\`):
		p.add(field, "is a folder", `write the path of the file, such as C:\k\kubelet.exe`)
	case strings.Contains(strings.ToLower(clean), ".swdt-"):
		p.add(field, "has .swdt- in it, which marks swdt's own files", "use another name")
	}
}

func validateHealth(p *problems, field string, h Health) {
	checks := 0
	for _, set := range []bool{h.HTTPGet != "", h.CRIPipe != "", h.None} {
		if set {
			checks++
		}
	}
	if checks > 1 {
		p.add(field, "has more than one check", "keep one of httpGet, criPipe and none")
	}
	if h.HTTPGet != "" {
		parsed, err := url.Parse(h.HTTPGet)
		if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			p.add(field+".httpGet", "is not an http or https URL", "write a URL such as http://127.0.0.1:10248/healthz")
		}
	}
	if h.CRIPipe != "" && !matches(`\\\\\.\\pipe\\[^\\/:"<>|?*\x00-\x1f]+`, h.CRIPipe) {
		p.add(field+".criPipe", "is not a named pipe", `write it as \\.\pipe\containerd-containerd`)
	}
	validateSpan(p, field+".settle", h.Settle, true)
	validateSpan(p, field+".timeout", h.Timeout, false)
	validateSpan(p, field+".stopTimeout", h.StopTimeout, false)
	if h.Settle != nil && h.Timeout != nil && h.Timeout.Duration > 0 && h.Settle.Duration > h.Timeout.Duration {
		p.add(field+".settle", fmt.Sprintf("%s is longer than the timeout of %s", h.Settle, h.Timeout),
			"make it shorter, or timeout longer")
	}
}

func validateSpan(p *problems, field string, d *Duration, zero bool) {
	switch {
	case d == nil:
	case d.Duration < 0 || d.Duration == 0 && !zero:
		p.add(field, fmt.Sprintf("%s is not a time to wait", d), "write a duration such as 30s")
	case d.Duration > maxWait:
		p.add(field, fmt.Sprintf("%s is too long", d), "write at most "+maxWait.String())
	}
}

// validateOrder rejects services that wait for each other, according to their DependsOn and
// to DefaultDependsOn.
func validateOrder(p *problems, field string, provisioners []Provisioner) {
	index := map[string]int{}
	for i, provisioner := range provisioners {
		index[strings.ToLower(provisioner.Name)] = i
	}
	const unvisited, open, done = 0, 1, 2
	state := make([]int, len(provisioners))
	var trail []string
	var visit func(i int)
	visit = func(i int) {
		state[i] = open
		trail = append(trail, provisioners[i].Name)
		for _, name := range slices.Concat(provisioners[i].DependsOn, DefaultDependsOn(provisioners[i].Name)) {
			next, inFile := index[strings.ToLower(name)]
			switch {
			case !inFile || state[next] == done:
			case state[next] == open:
				from := slices.IndexFunc(trail, func(t string) bool { return strings.EqualFold(t, name) })
				p.add(at(field, i, "dependsOn"),
					"services wait for each other: "+strings.Join(append(slices.Clone(trail[max(from, 0):]), name),
						" → "),
					"remove one of the dependencies")
			default:
				visit(next)
			}
		}
		trail = trail[:len(trail)-1]
		state[i] = done
	}
	for i := range provisioners {
		if state[i] == unvisited {
			visit(i)
		}
	}
}
