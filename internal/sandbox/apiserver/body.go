package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// asJSON converts a request's body to JSON. Kubernetes' own clients send Kubernetes' own types as
// protobuf, but accept answers in JSON. asJSON leaves patches unchanged.
func asJSON(r Request, resource Resource, contentType string, body []byte) ([]byte, error) {
	switch {
	case len(body) == 0, r.Verb == "patch", contentType == "", contentType == "application/json":
		return body, nil
	case contentType == "application/yaml":
		data, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return data, nil
	case contentType != "application/vnd.kubernetes.protobuf":
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Verb,
			groupResource(resource), r.Name,
			"this API server understands JSON, YAML and protobuf, not "+strings.TrimSpace(contentType), 0, true)
	}
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	data, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("understand the request: %w", err)
	}
	return data, nil
}
