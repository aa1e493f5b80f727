/** What goes wrong in the page itself. */
import type { errors as en } from "../en/errors";

export const errors: Readonly<Record<keyof typeof en, string>> = {
  "errors.open": "无法打开这份记录：{why}",
  "errors.upload": "无法将该文件读作记录：{why}",
  "errors.server": "服务器无法完成操作：{why}",
  "errors.run": "运行未完成：{why}。您的文本仍在输入框中。",
  "errors.lost": "服务器没有响应。当前内容会保留，并每隔几秒重试连接。“regard serve”还在运行吗？",
  "errors.lost.kernel": "内核没有响应。当前内容会保留；请重新运行此单元格。",
  "errors.unknown": "{name} 不在这里；请用“regard serve”打开，或拖放其文件。",
  "errors.empty": "请先输入文本，再运行。",
  "errors.picture": "该模型读取图片，请先选择图片，再运行。",
  "errors.blind": "这里没有能读取图片的模型。启动时指定一个：regard serve 文件夹",
  "errors.large": "图片超过 {size} MB：请选择较小的图片。",
  "errors.noAttention": "这份记录中没有注意力：模型运行时没有记录到任何内容。请观察整个模型，而不是不含注意力的部分。",
  "errors.view": "无法显示此视图：{why} 请尝试其他视图，或重新打开记录。",
  "errors.take": "导出失败：{why}",
  "errors.nothing": "此视图还没有可导出的内容",
  "errors.kernel": "内核没有响应：它正忙，或已重启。请等它空闲，或重新运行此单元格。",
  "errors.http.loading": "正在加载 {name}…",
  "errors.http.translating": "正在翻译…",
  "errors.http.summarising": "正在生成摘要…",
  "errors.http.waiting": "正在等待另一个运行结束…",
  "errors.http.token": "此链接已失效，请打开“regard serve”显示的链接。",
  "errors.http.lost": "服务器没有响应。“regard serve”还在运行吗？",
  "errors.http.status": "服务器返回状态码 {status}。请重试，或重新启动“regard serve”。",
};
