package convert

// poolingKey says how an embedding model makes one vector of a text's, if the folder says it.
func poolingKey(c *converter) {
	const mean, cls, last = 1, 2, 3 // as llama.cpp numbers them
	text := c.folder.Texts["1_Pooling/config.json"]
	if text == nil {
		return
	}
	o, err := parseObject("1_Pooling/config.json", text)
	if err != nil {
		c.config.faultf("1_Pooling: %w", err)
		return
	}
	for _, k := range []struct {
		key, mode string
		kind      uint32
	}{{"pooling_mode_mean_tokens", "mean", mean}, {"pooling_mode_cls_token", "cls", cls},
		{"pooling_mode_lasttoken", "lasttoken", last}} {
		if set, _ := o.truth(k.key); set || o.string("pooling_mode") == k.mode {
			c.set("pooling_type", k.kind)
			return
		}
	}
	c.config.faultf("1_Pooling/config.json: says of no way to pool that it is used: want mean, cls or the last token")
}
