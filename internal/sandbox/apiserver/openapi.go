package apiserver

import "strings"

// openAPI answers /openapi/v3 and the paths below it. It has no schemas. It only declares that the
// server validates fields itself, so that kubectl apply does not ask for schemas. (The server
// accepts every field.)
func (c *Cluster) openAPI(path string) (any, bool) {
	prefix := map[string]string{} // the path by apiVersion
	for _, r := range c.table() {
		prefix[r.apiVersion()] = "api/" + r.Version
		if r.Group != "" {
			prefix[r.apiVersion()] = "apis/" + r.apiVersion()
		}
	}
	wanted := strings.TrimPrefix(strings.TrimPrefix(path, "/openapi/v3"), "/")
	if wanted == "" {
		paths := object{}
		for _, one := range prefix {
			paths[one] = object{"serverRelativeURL": "/openapi/v3/" + one}
		}
		return object{"paths": paths}, true
	}
	paths := object{}
	for _, r := range c.table() {
		if prefix[r.apiVersion()] != wanted {
			continue
		}
		kind := object{"group": r.Group, "version": r.Version, "kind": r.Kind}
		operation := object{
			"x-kubernetes-group-version-kind": kind, "responses": object{},
			"parameters": []any{object{"name": "fieldValidation", "in": "query", "schema": object{"type": "string"}}},
		}
		paths["/"+wanted+"/"+r.Name+"/{name}"] = object{"patch": operation}
	}
	document := object{"openapi": "3.0.0", "info": object{"title": "Kubernetes", "version": "simulated"},
		"paths": paths}
	return document, len(paths) > 0
}
