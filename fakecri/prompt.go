package fakecri

// Prompt returns the same connection whose calls that only read are answered
// without giving way where [Client.Answers] allows it, so that they can be made
// in a callback of the loop.
func (c *Client) Prompt() *Client {
	return &Client{r: c.r, by: caller{r: c.r.calls, g: c.by.g, prompt: true}}
}

// Answers tells whether a call of that method, made now with a client of
// Prompt, would be answered at once: it only reads, the daemon is up, no fault
// touches the method and it has no latency. It is no call and takes no time.
func (c *Client) Answers(method string) bool {
	if !c.by.prompt {
		return false
	}
	m, ok := promptMethods[method]
	return ok && c.r.calls.prompt(m)
}

// promptMethods are the methods whose answers are made in one step.
var promptMethods = map[string]method{
	"Version":          mVersion,
	"Status":           mStatus,
	"RuntimeConfig":    mRuntimeConfig,
	"PodSandboxStatus": mPodSandboxStatus,
	"ListPodSandbox":   mListPodSandbox,
	"ContainerStatus":  mContainerStatus,
	"ListContainers":   mListContainers,
	"ListImages":       mListImages,
	"ImageStatus":      mImageStatus,
	"ImageFsInfo":      mImageFsInfo,
}
