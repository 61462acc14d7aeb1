package api

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// ArtifactFilter says whose artifacts are listed: one of them, by its id or the first characters of it.
type ArtifactFilter struct{ Run, Job, Attempt string }

// Artifacts lists what a run, a job or an attempt has kept.
func (c *Client) Artifacts(ctx context.Context, f ArtifactFilter, page Page) (*List[Artifact], error) {
	query := page.values()
	for name, value := range map[string]string{"run": f.Run, "job": f.Job, "attempt": f.Attempt} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return fetch[List[Artifact]](ctx, c, call{method: http.MethodGet, path: "artifacts", query: query})
}

// Artifact tells of an artifact and one page of the folder of it at a path; "" is its root.
func (c *Client) Artifact(ctx context.Context, id, path string, page Page) (*ArtifactFolder, error) {
	query := page.values()
	if path != "" {
		query.Set("path", path)
	}
	return fetch[ArtifactFolder](ctx, c, call{method: http.MethodGet, path: one("artifacts", id), query: query})
}

// ArtifactFile gives the bytes of a file of an artifact; the caller closes it. Whoever gets as many as there are has got the
// right ones: the daemon has verified them. Otherwise the reader ends with an error.
func (c *Client) ArtifactFile(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.content(ctx, id, url.Values{"path": {path}})
}

// ArtifactArchive gives an artifact, or what stands at a path of it, as a tar stream; the caller closes it. An archive that
// comes to its end is whole and verified.
func (c *Client) ArtifactArchive(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.content(ctx, id, url.Values{"path": {path}, "format": {"tar"}})
}

func (c *Client) content(ctx context.Context, id string, query url.Values) (io.ReadCloser, error) {
	answer, err := c.send(ctx, call{method: http.MethodGet, path: one("artifacts", id) + "/content", query: query})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// ObjectStat tells what the daemon's store has.
func (c *Client) ObjectStat(ctx context.Context) (*ObjectStat, error) {
	return fetch[ObjectStat](ctx, c, call{method: http.MethodGet, path: "cas:stat"})
}

// ExplainObject tells why an object is kept.
func (c *Client) ExplainObject(ctx context.Context, ref string) (*ObjectExplanation, error) {
	return fetch[ObjectExplanation](ctx, c, call{method: http.MethodGet, path: one("cas", ref) + "/explain"})
}

// VerifyObjects has the daemon look at every object, and deep also at all their bytes. It yields an event EventFinding for each
// that is wrong, and at last EventEnd with the sum. It may take long.
func (c *Client) VerifyObjects(ctx context.Context, deep bool) iter.Seq2[Event, error] {
	query := url.Values{}
	if deep {
		query.Set("deep", "true")
	}
	return c.events(ctx, call{method: http.MethodPost, path: "cas:verify", query: query})
}
