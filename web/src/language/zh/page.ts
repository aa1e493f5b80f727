/** A trace as one HTML file. */
import type { page as en } from "../en/page";

export const page: Readonly<Record<keyof typeof en, string>> = {
  "page.empty": "此页面不含任何记录。请用 trace.page(…) 重新生成，或用“regard serve”打开记录文件。",
  "page.cut": "此页面不完整：复制或保存时被截断。请重新获取文件。",
  "page.newer": "此页面由更新版本的 regard 生成。请重新生成，或获取完整文件。",
  "page.failed": "无法打开此页面：{why}。请使用较新的浏览器，或重新生成页面。",
  "page.exact": "此页面保存模型自身的数值（{precision}），未作任何舍入。",
  "page.rounded": "此页面以 {precision} 保存 q 和 k。其中权重的最大误差为 {error}，由全部行测得。",
  "page.sampled": "此页面以 {precision} 保存 q 和 k。其中权重的最大误差为 {error}，由每个头的 {rows} 行测得。",
};
