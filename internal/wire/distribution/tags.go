package distribution

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
)

// The bounds on a list of tags. mcr.microsoft.com/windows/servercore has about 2,000.
const (
	mostTags     = 20_000
	tagsOfAPage  = 1_000
	maxTagsReply = 1 << 20 // bytes
)

// Tags returns the tags of the repository in the registry's order. It reads 20,000 names at most, and leaves out those that are
// no tags. more reports that the registry has others: they are beyond that limit, or the registry does not send the tags after
// a given one. Tags asks for the next page by the last tag, and follows no link that the registry names.
func (r *Repository) Tags(ctx context.Context) (all []string, more bool, err error) {
	last := ""
	for read := 0; ; {
		page, err := r.tagPage(ctx, last)
		if err != nil {
			return nil, false, err
		}
		// A registry that knows no pages sends the same tags each time.
		if len(page.names) == 0 || page.names[len(page.names)-1] == last {
			return all, page.linked, nil
		}
		for _, tag := range page.names {
			if read++; read > mostTags {
				return all, true, nil
			}
			if IsTag(tag) {
				all = append(all, tag)
			}
		}
		// Fewer tags than were asked for are the last ones, unless there is a link: section "Listing Tags" of
		// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md.
		if !page.linked && len(page.names) < tagsOfAPage {
			return all, false, nil
		}
		last = page.names[len(page.names)-1]
	}
}

// tagPage is a part of the list of tags.
type tagPage struct {
	names  []string
	linked bool // the registry names a next page
}

// linksNext reports whether a header has a link to the next page, as RFC 8288 writes it.
func linksNext(header http.Header) bool {
	rel := regexp.MustCompile(`(?i);\s*rel\s*=\s*"?next"?\s*(;|,|$)`)
	return slices.ContainsFunc(header.Values("Link"), rel.MatchString)
}

// tagPage returns the tags after the last one of the page before.
func (r *Repository) tagPage(ctx context.Context, last string) (tagPage, error) {
	query := url.Values{"n": {strconv.Itoa(tagsOfAPage)}}
	if last != "" {
		query.Set("last", last)
	}
	response, err := r.getQuery(ctx, "tags/list", query, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return tagPage{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return tagPage{}, &StatusError{Reference: r.reference, Status: response.StatusCode}
	}
	content, err := readAll(response.Body, maxTagsReply)
	if err != nil {
		return tagPage{}, fmt.Errorf("read the tags of %s/%s: %w", r.reference.Registry, r.reference.Repository, r.failed(ctx, err))
	}
	var reply struct {
		Tags []string `json:"tags"`
	}
	if err := json.Unmarshal(content, &reply); err != nil { // err may quote the reply
		return tagPage{}, fmt.Errorf("read the tags of %s/%s: the registry sends no list of tags: check the name", r.reference.Registry,
			r.reference.Repository)
	}
	return tagPage{reply.Tags, linksNext(response.Header)}, nil
}
