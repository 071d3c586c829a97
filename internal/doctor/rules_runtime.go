package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/swdt-dev/swdt/internal/criclient"
)

func runtimeRules() []Rule {
	return []Rule{
		{
			ID: "containerd-config", Title: "containerd reads its configuration", Severity: Error, Needs: []string{"containerdConfig"}, Link: docsCRI,
			Means:  "containerd ends when it is started the next time.",
			Remedy: "correct it: `swdt exec -- containerd config default` prints what this containerd has, and `swdt join` writes one of its version", look: lookAtContainerdConfig,
		},
		{
			ID: "containerd-config-version", Title: "containerd's configuration is of its version", Severity: Warning, Needs: []string{"containerdConfig"}, Link: docsCRI,
			Means:  "containerd translates an older configuration at every start, and passes over what is not in its place any more without a word.",
			Remedy: "`swdt exec -- containerd config migrate` prints it in the present version", look: lookAtConfigVersion,
		},
		{
			ID: "containerd-version", Title: "this kubelet takes this containerd", Severity: Error, Needs: []string{"programs"}, Link: docsReleases,
			Means:  "kubelet asks its runtime for what older ones do not have: it ends, or goes without.",
			Remedy: "push a newer containerd: `swdt kubernetes --only containerd`", look: lookAtContainerdVersion,
		},
		{
			ID: "runtime-answers", Title: "the container runtime answers", Severity: Error, Needs: []string{"runtime"}, Link: docsCRI,
			Means:  "kubelet cannot start, stop or see any container.",
			Remedy: "see why: `swdt logs containerd --tail 50`; `swdt status`", look: lookAtAnswer,
		},
		{
			ID: "runtime-ready", Title: "the container runtime is ready", Severity: Error, Needs: []string{"runtime"}, Link: docsCRI,
			Means:  "kubelet starts no pod until the runtime says that it is.",
			Remedy: "see why: `swdt logs containerd --tail 50`", look: lookAtCondition("RuntimeReady", "the container runtime is not ready"),
		},
		{
			ID: "network-ready", Title: "there is a pod network", Severity: Error, Needs: []string{"runtime"}, Link: docsDebug,
			Means:  "The node is NotReady, and pods stay in ContainerCreating: only those on the host's network start.",
			Remedy: "see what the pod network's installer says: kubectl get pods -A -o wide; `swdt logs calico` (or flannel, antrea)", look: lookAtCondition("NetworkReady", "the runtime has no pod network"),
		},
		{
			ID: "runtime-handlers", Title: "RuntimeClasses have their handlers", Severity: Warning, Needs: []string{"containerdConfig", "runtimeClasses"}, Link: docsRunClass,
			Means:  "A pod of such a RuntimeClass is scheduled here and stays in ContainerCreating: no runtime for it is configured.",
			Remedy: "add the runtime to spec.kubernetes.containerd.config and run `swdt join`, or give the RuntimeClass a scheduling.nodeSelector", look: lookAtHandlers,
		},
		{
			ID: "stopped-sandboxes", Title: "ended pods are cleared away", Severity: Info, Needs: []string{"sandboxes"},
			Means:  "kubelet removes ended sandboxes as it goes; many that stay have something that cannot be removed, and take space.",
			Remedy: "`swdt cri pods` shows them; `swdt logs containerd` says what keeps them", look: lookAtStopped, Link: docsCRI,
		},
	}
}

func lookAtContainerdConfig(f *Facts) []Finding {
	if c := f.Containerd.Value; c.Refused != "" {
		return one(found(c.Refused, "containerd refuses %s", c.Path))
	}
	return nil
}

func lookAtConfigVersion(f *Facts) []Finding {
	c := f.Containerd.Value
	switch {
	case !c.Exists || c.Refused != "":
		return nil
	case c.FileVersion < 2:
		return one(found(fmt.Sprintf("%s says version = %d", c.Path, c.FileVersion), "containerd's configuration is of version 1, which containerd 2 does not read any more"))
	case c.FileVersion > c.Version && c.Version > 0:
		return one(found(fmt.Sprintf("%s says version = %d", c.Path, c.FileVersion), "containerd's configuration is newer than containerd, which has version %d and passes over what it does not know", c.Version))
	case c.Version > c.FileVersion:
		return one(found(fmt.Sprintf("%s says version = %d", c.Path, c.FileVersion), "containerd's configuration is older than containerd, which has version %d", c.Version).as(Info))
	}
	return nil
}

// minorOf is y of a version 1.y.z.
func minorOf(text string) (int, bool) {
	v, err := version.ParseGeneric(text)
	if err != nil || v.Major() != 1 {
		return 0, false
	}
	return int(v.Minor()), true
}

// lookAtContainerdVersion: kubelet 1.26 speaks CRI v1 alone, which is in containerd
// since 1.6; 1.35 is the last one that supports containerd 1.
func lookAtContainerdVersion(f *Facts) []Finding {
	kubelet, containerd := (*f.Programs.Value)["kubelet"].Version, (*f.Programs.Value)["containerd"].Version
	minor, ok := minorOf(kubelet)
	has, err := version.ParseGeneric(containerd)
	if !ok || err != nil {
		return nil
	}
	seen := "kubelet " + kubelet + ", containerd " + containerd
	switch {
	case minor >= 26 && has.LessThan(version.MustParseGeneric("1.6.0")):
		return one(found(seen, "this kubelet needs CRI v1, which containerd has since 1.6"))
	case minor > 35 && has.Major() < 2:
		return one(found(seen, "1.35 was the last Kubernetes that supports containerd 1").as(Info))
	}
	return nil
}

func lookAtAnswer(f *Facts) []Finding {
	r := f.Runtime.Value
	switch {
	case !r.Answers:
		return one(found(r.Error, "no container runtime answers on %s", r.Pipe))
	case r.Error != "":
		return one(found(r.Error, "the container runtime does not tell its status"))
	}
	return nil
}

func lookAtCondition(kind, what string) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		c, ok := f.Runtime.Value.condition(kind)
		if !ok || c.Status {
			return nil
		}
		return one(found(strings.Trim(c.Reason+": "+c.Message, ": "), "%s", what))
	}
}

func lookAtHandlers(f *Facts) (all []Finding) {
	handlers := f.Containerd.Value.Handlers
	if len(handlers) == 0 {
		return nil // it says nothing of them, so that they are its own
	}
	for _, class := range *f.RuntimeClasses.Value {
		if slices.Contains(handlers, class.Handler) {
			continue
		}
		used := f.podsOfClass(class.Name)
		if !class.Windows && used == "" {
			continue // of the cluster's other nodes
		}
		seen := "containerd has " + strings.Join(handlers, ", ")
		if used != "" {
			seen = "pod " + used + "; " + seen
		}
		all = append(all, found(seen, "containerd has no runtime %s, which RuntimeClass %s asks for", class.Handler, class.Name))
	}
	return all
}

// podsOfClass is a pod of this node that asks for a RuntimeClass; empty where none
// does, or no pods are known.
func (f *Facts) podsOfClass(name string) string {
	if f.Pods.Value == nil {
		return ""
	}
	for _, p := range *f.Pods.Value {
		if p.RuntimeClass == name {
			return p.String()
		}
	}
	return ""
}

// manySandboxes is more than kubelet leaves of its pods' earlier lives.
const manySandboxes = 100

func lookAtStopped(f *Facts) []Finding {
	count := 0
	for _, s := range *f.Sandboxes.Value {
		if !s.Ready {
			count++
		}
	}
	if count < manySandboxes {
		return nil
	}
	return one(found(fmt.Sprintf("%d of %d sandboxes have ended", count, len(*f.Sandboxes.Value)), "many ended pods were not cleared away"))
}

func imageRules() []Rule {
	return []Rule{
		{
			ID: "pause-image", Title: "this Windows runs the pause image", Severity: Error, Needs: []string{"machine", "containerdConfig", "images"}, Link: docsImages,
			Means:  "No pod starts at all but HostProcess ones: every pod has this image's container in it.",
			Remedy: "set spec.kubernetes.containerd.pauseImage to one with this Windows in its list, such as registry.k8s.io/pause:3.10, and run `swdt join`", look: lookAtPause,
		},
		{
			ID: "image-mismatch", Title: "this Windows runs its pods' images", Severity: Error, Needs: []string{"machine", "containers", "images"}, Link: docsImages,
			Means:  "An image newer than the host never runs (HCS_E_IMAGE_MISMATCH, 0xc0370101), an older one only isolated by Hyper-V; HostProcess containers run anyway.",
			Remedy: "use an image of this Windows, or keep the pod off this node: nodeSelector node.kubernetes.io/windows-build", look: lookAtImagesInUse,
		},
		{
			ID: "image-store", Title: "images leave room", Severity: Warning, Needs: []string{"machine", "imageStoreBytes"},
			Means:  "Windows' base images are large, and kubelet removes what nobody uses only when the drive is 85% full.",
			Remedy: "`swdt cri images` shows them; kubelet's imageGCHighThresholdPercent makes it begin earlier", look: lookAtImageStore,
			Link: "https://kubernetes.io/docs/concepts/architecture/garbage-collection/#container-image-lifecycle",
		},
	}
}

// on is whether a Windows of this build runs the image.
func (i Image) on(build string) criclient.Verdict {
	return criclient.Platform{OS: i.OS, OSVersion: i.OSVersion}.On(build)
}

func (i Image) name() string {
	if len(i.Tags) > 0 {
		return i.Tags[0]
	}
	return i.ID
}

func (i Image) is(reference string) bool {
	return reference != "" && (reference == i.ID || slices.Contains(i.Tags, reference))
}

func (i Image) madeFor() string {
	return fmt.Sprintf("%s is for %s %s", i.name(), cmp.Or(i.OS, "an unknown system"), i.OSVersion)
}

func lookAtPause(f *Facts) []Finding {
	build := f.Machine.Value.Build
	for _, image := range *f.Images.Value {
		if !image.is(f.Containerd.Value.SandboxImage) {
			continue
		}
		if v := image.on(build); v != criclient.Runs && v != criclient.Unknown {
			return one(found(fmt.Sprintf("%s, the node has build %s", image.madeFor(), build), "the pause image is one that this Windows does not run (%s)", v))
		}
	}
	return nil
}

func lookAtImagesInUse(f *Facts) (all []Finding) {
	build := f.Machine.Value.Build
	for _, image := range *f.Images.Value {
		v := image.on(build)
		if v == criclient.Runs || v == criclient.Unknown {
			continue
		}
		for _, c := range *f.InUse.Value {
			// One that runs is HostProcess, or isolated.
			if c.State != "running" && image.is(c.Image) {
				all = append(all, found(fmt.Sprintf("%s, the node has build %s", image.madeFor(), build), "container %s of pod %s is of an image that this Windows does not run (%s)", c.Name, f.podOf(c), v))
				break
			}
		}
	}
	return all
}

func (f *Facts) podOf(c Container) string {
	if f.Sandboxes.Value != nil {
		for _, s := range *f.Sandboxes.Value {
			if s.ID == c.Sandbox {
				return s.Namespace + "/" + s.Name
			}
		}
	}
	return cmp.Or(c.Sandbox, "unknown")
}

func lookAtImageStore(f *Facts) []Finding {
	used, free := *f.ImageStore.Value, f.Machine.Value.DiskFree
	if used <= 2*free {
		return nil
	}
	return one(found(fmt.Sprintf("%s in images and snapshots, %s free", size(used), size(free)), "images take more than twice of what is free"))
}
