package distribution

import "strings"

// dockerHub is the registry of image names that name none.
const dockerHub = "docker.io"

// ParseImage parses the name of an image as in a pod, by the rules of containerd (github.com/distribution/reference,
// ParseDockerRef): a name without a registry is one of Docker Hub, with one part only it is an official image
// there, and a digest counts more than a tag.
func ParseImage(text string) (Reference, error) {
	if strings.Contains(text, "://") || strings.HasSuffix(text, ":") {
		return Reference{}, &ReferenceError{Text: text}
	}
	registry, rest, ok := strings.Cut(text, "/")
	if !ok || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		registry, rest = dockerHub, text
	}
	if registry == "index."+dockerHub {
		registry = dockerHub
	}
	if registry == dockerHub && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	r, err := ParseReference(registry + "/" + rest)
	if err != nil {
		return Reference{}, &ReferenceError{Text: text}
	}
	return r, nil
}
