//! Stand-in for SVG images in a build without the feature `svg`: none is drawn.

use core_ir::draw::Picture;

/// Refuses to draw.
///
/// # Errors
/// Always.
pub fn svg(_: &Picture) -> Result<String, String> {
    Err("this program was built without SVG images (help: build it with `--features svg`)".to_string())
}
