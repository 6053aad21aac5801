package handlers

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/workspaces"
)

const embeddingsPath = "/deployments/{id}/v1/embeddings"

func isEmbeddings(c echo.Context) bool { return strings.HasSuffix(c.Path(), "/embeddings") }

// Embeddings are vectors for texts, as OpenAI's API returns them.
type Embeddings struct {
	Object string         `json:"object" enum:"list"`
	Data   []Embedding    `json:"data" doc:"an embedding of each text, in their order"`
	Model  string         `json:"model" doc:"name of the deployment"`
	Usage  EmbeddingUsage `json:"usage" doc:"numbers of tokens"`
}

// Embedding is a vector for a text.
type Embedding struct {
	Object    string `json:"object" enum:"embedding"`
	Index     int    `json:"index" doc:"number of the text, from 0"`
	Embedding any    `json:"embedding" doc:"list of values; a text if encoding_format is base64"`
}

// EmbeddingUsage counts tokens.
type EmbeddingUsage struct {
	Prompt int `json:"prompt_tokens" doc:"tokens of all texts"`
	Total  int `json:"total_tokens" doc:"the same"`
}

func (a rest) createEmbeddings(ctx context.Context, in *CreateIn[workspaces.EmbeddingInput]) (*Response[Embeddings], error) {
	v, err := a.Workspaces.Embed(ctx, actorOf(ctx), in.ID, in.Body)
	if err != nil {
		return nil, err
	}
	r := Embeddings{Object: "list", Model: v.Deployment.Name, Usage: EmbeddingUsage{v.Tokens, v.Tokens}}
	for i, vector := range v.Vectors {
		e := Embedding{"embedding", i, vector}
		if in.Body.EncodingFormat == "base64" {
			e.Embedding = base64Of(vector)
		}
		r.Data = append(r.Data, e)
	}
	return &Response[Embeddings]{r}, nil
}

// base64Of is the bytes of values in float32, little-endian.
func base64Of(values []float32) string {
	data, _ := binary.Append(nil, binary.LittleEndian, values) // numbers have a fixed size
	return base64.StdEncoding.EncodeToString(data)
}
